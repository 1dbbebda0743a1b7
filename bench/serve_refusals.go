package bench

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// refusals tells in the log of deliveries that the receiver refused: of the first of a provider and reason at once, of those that follow as a sum, once a minute at most. So a secret that is
// wrong is seen by who looks at the log, and a flood of forgeries does not fill it.
//
// Note: the receiver itself says each of them at the level of debugging, for who wants to see all. What is not addressed to a provider that is listened to stays there: it is the noise of the
// internet.
type refusals struct {
	known map[string]bool
	now   func() time.Time

	mu     sync.Mutex
	next   slog.Handler
	groups map[refusal]*refused
}

// refusal is what refusals are told apart by. Its texts are the receiver's own, and a provider's that is known: there are not many.
type refusal struct{ provider, reason string }

// refused is how many came since it was told of.
type refused struct {
	count, status int64
	told          time.Time
}

const (
	// refusalMessage is the message of the receiver's record of a refusal.
	refusalMessage = "request refused"
	// refusalEvery is the least time between two records of one provider and reason.
	refusalEvery = time.Minute
)

func newRefusals(providers []string) *refusals {
	r := &refusals{known: map[string]bool{}, groups: map[refusal]*refused{}, now: time.Now}
	for _, name := range providers {
		r.known[name] = true
	}
	return r
}

// handler hears what a receiver logs, and passes it on as before.
func (r *refusals) handler(next slog.Handler) slog.Handler {
	r.next = next
	return refusalHandler{next, r}
}

// count counts a refusal and tells of it if it is time.
func (r *refusals) count(ctx context.Context, record slog.Record) {
	var path, reason string
	var status int64
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "path":
			path = a.Value.String()
		case "reason":
			reason = a.Value.String()
		case "status":
			status = a.Value.Int64()
		}
		return true
	})
	provider, ok := strings.CutPrefix(path, "/webhooks/")
	if !ok || !r.known[provider] {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := refusal{provider, reason}
	g := r.groups[key]
	if g == nil {
		g = &refused{status: status}
		r.groups[key] = g
	}
	if g.count++; r.now().Sub(g.told) >= refusalEvery {
		r.tell(ctx, key, g)
	}
}

// tell writes the record; r.mu is held.
func (r *refusals) tell(ctx context.Context, key refusal, g *refused) {
	record := slog.NewRecord(r.now(), slog.LevelWarn, "deliveries refused", 0)
	record.AddAttrs(slog.String("provider", key.provider), slog.Int64("status", g.status), slog.String("reason", key.reason), slog.Int64("count", g.count))
	if r.next.Enabled(ctx, slog.LevelWarn) {
		_ = r.next.Handle(ctx, record) // as slog does
	}
	g.count, g.told = 0, r.now()
}

// flush tells of all that was not told of.
func (r *refusals) flush(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	order := func(a, b refusal) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.reason, b.reason))
	}
	for _, key := range slices.SortedFunc(maps.Keys(r.groups), order) {
		if g := r.groups[key]; g.count > 0 {
			r.tell(ctx, key, g)
		}
	}
}

// refusalHandler is a slog.Handler that shows refusals what it is given.
type refusalHandler struct {
	slog.Handler
	all *refusals
}

// Enabled implements slog.Handler: refusals are said at the level of debugging.
func (h refusalHandler) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h refusalHandler) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == refusalMessage {
		h.all.count(ctx, record)
	}
	if !h.Handler.Enabled(ctx, record.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs and WithGroup implement slog.Handler.
func (h refusalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return refusalHandler{h.Handler.WithAttrs(attrs), h.all}
}

func (h refusalHandler) WithGroup(name string) slog.Handler {
	return refusalHandler{h.Handler.WithGroup(name), h.all}
}
