package dashboard

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue"
)

// Bounds of what one request looks at, shows and does.
const (
	maxScanned  = 20_000
	pageLetters = 50
	maxReasons  = 20
	// actAtOnce is how many dead letters are given back at once: they share writes of the queue. actLimit is when a request stops and says how many are left.
	actAtOnce = 16
	actLimit  = 20 * time.Second
)

// letters is the page of the dead letters.
type letters struct {
	frame
	Total, Matching string
	// More: there are so many that not all were looked at.
	More bool
	// Reason is the one that is chosen, "" all of them; Since and Until are times of the form lettersTime, "" without a bound. Chosen says that anything of it is.
	Reason, ReasonText string
	Since, Until       string
	Chosen             bool
	Reasons            []reasonGroup
	Letters            []letter
	From, To           string
	Older, Newer       string
	Outcome            []string
}

// reasonGroup are the dead letters of one reason.
type reasonGroup struct {
	Key, Text, Count, Link string
	n                      int
}

// letter is one dead letter.
type letter struct {
	Key, Provider, ID, Type, Lane, Reason, Attempts, At, Link string
}

// choice are the letters that a page or a form is about.
type choice struct {
	reason       string // its key, "" for all
	since, until time.Time
}

// lettersTime is how times stand in addresses and forms, as browsers write them: in UTC here.
const lettersTime = "2006-01-02T15:04"

// parseChoice reads the choice of an address or a form.
func parseChoice(values url.Values) (choice, error) {
	c := choice{reason: values.Get("reason")}
	for name, into := range map[string]*time.Time{"since": &c.since, "until": &c.until} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		t, err := time.Parse(lettersTime, text)
		if err != nil {
			return choice{}, err
		}
		*into = t
	}
	return c, nil
}

// any reports whether it leaves something out.
func (c choice) any() bool { return c != choice{} }

// inTime reports whether a letter was given up within the bounds, fits whether it has the reason too.
func (c choice) inTime(l queue.DeadLetter) bool {
	return (c.since.IsZero() || !l.At.Before(c.since)) && (c.until.IsZero() || l.At.Before(c.until))
}

func (c choice) fits(l queue.DeadLetter) bool {
	return c.inTime(l) && (c.reason == "" || c.reason == reasonKey(l.Reason))
}

// values is the reverse of parseChoice.
func (c choice) values() url.Values {
	values := url.Values{}
	if c.reason != "" {
		values.Set("reason", c.reason)
	}
	for name, t := range map[string]time.Time{"since": c.since, "until": c.until} {
		if !t.IsZero() {
			values.Set(name, t.Format(lettersTime))
		}
	}
	return values
}

// reasonKey is a reason as one word. It is shortened: a collision would only show two reasons as one.
func reasonKey(reason string) string {
	digest := sha256.Sum256([]byte(reason))
	return hex.EncodeToString(digest[:8])
}

// errEnough ends a walk through the dead letters.
var errEnough = errors.New("enough")

// walk calls fn for each dead letter, oldest first, of one reason or of all, and reports whether it saw them all.
func (d *Dashboard) walk(ctx context.Context, limit int, fn func(queue.DeadLetter)) (all bool, err error) {
	seen := 0
	err = d.cfg.Queue.DeadLetters(ctx, func(l queue.DeadLetter) error {
		if seen == limit {
			return errEnough
		}
		seen++
		fn(l)
		return nil
	})
	if errors.Is(err, errEnough) {
		return false, nil
	}
	return err == nil, err
}

func (d *Dashboard) serveLetters(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, err := strconv.Atoi(cmp.Or(query.Get("from"), "0"))
	if err != nil || from < 0 {
		d.refuse(w, r, http.StatusBadRequest, "The page number is not one.")
		return
	}
	chosen, err := parseChoice(query)
	if err != nil {
		d.refuse(w, r, http.StatusBadRequest, "The time is not one: write it as 2026-11-30T06:00.")
		return
	}
	page := &letters{frame: frame{Title: "Dead letters"}, Reason: chosen.reason, Chosen: chosen.any(), Outcome: outcome(query)}
	page.Since, page.Until = chosen.values().Get("since"), chosen.values().Get("until")
	groups := map[string]*reasonGroup{}
	total, matching := 0, 0
	all, err := d.walk(r.Context(), maxScanned, func(l queue.DeadLetter) {
		total++
		if !chosen.inTime(l) {
			return
		}
		key := reasonKey(l.Reason)
		if groups[key] == nil {
			groups[key] = &reasonGroup{Key: key, Text: l.Reason, Link: lettersLink(choice{key, chosen.since, chosen.until}, 0)}
		}
		groups[key].n++
		if chosen.reason != "" && chosen.reason != key {
			return
		}
		if matching >= from && len(page.Letters) < pageLetters {
			page.Letters = append(page.Letters, newLetter(l))
		}
		matching++
	})
	if err != nil {
		d.log.WarnContext(r.Context(), "dead letters could not be read", "err", err)
		d.refuse(w, r, http.StatusBadGateway, "The queue does not show its dead letters now; the log says why.")
		return
	}
	page.More = !all
	page.Total, page.Matching = count(int64(total)), count(int64(matching))
	page.From, page.To = count(int64(from+1)), count(int64(from+len(page.Letters)))
	page.group(groups)
	page.turn(chosen, from, matching)
	d.render(w, r, "letters", page)
}

// group lists the reasons, the most frequent first.
func (p *letters) group(groups map[string]*reasonGroup) {
	if g := groups[p.Reason]; g != nil {
		p.ReasonText = g.Text
	}
	sorted := slices.SortedFunc(maps.Values(groups), func(a, b *reasonGroup) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.Text, b.Text))
	})
	for _, g := range sorted[:min(len(sorted), maxReasons)] {
		g.Count = count(int64(g.n))
		p.Reasons = append(p.Reasons, *g)
	}
}

// turn makes the links to the pages before and behind.
func (p *letters) turn(c choice, from, matching int) {
	if from > 0 {
		p.Older = lettersLink(c, max(0, from-pageLetters))
	}
	if from+pageLetters < matching {
		p.Newer = lettersLink(c, from+pageLetters)
	}
}

func lettersLink(c choice, from int) string {
	query := c.values()
	if from > 0 {
		query.Set("from", strconv.Itoa(from))
	}
	if len(query) == 0 {
		return "/letters"
	}
	return "/letters?" + query.Encode()
}

func newLetter(l queue.DeadLetter) letter {
	key := eventKey(l.Provider, l.EventID)
	return letter{
		Key: key, Provider: l.Provider, ID: l.EventID, Type: l.Type, Lane: laneName(l.Lane), Reason: l.Reason,
		Attempts: count(int64(l.Attempts)), At: stamp(l.At), Link: "/event?key=" + key,
	}
}

// action is what a form asks to be done with dead letters.
type action struct {
	verb string
	do   func(ctx context.Context, provider, eventID string) error
}

func (d *Dashboard) serveRetry(w http.ResponseWriter, r *http.Request) {
	q, ok := d.cfg.Queue.(queue.Redriver)
	if !ok {
		d.refuse(w, r, http.StatusNotImplemented, "This queue cannot give dead letters back.")
		return
	}
	d.act(w, r, action{"retried", q.Redrive})
}

func (d *Dashboard) serveDrop(w http.ResponseWriter, r *http.Request) {
	q, ok := d.cfg.Queue.(queue.Dropper)
	if !ok {
		d.refuse(w, r, http.StatusNotImplemented, "This queue cannot drop dead letters.")
		return
	}
	d.act(w, r, action{"dropped", q.Drop})
}

// event is a dead letter that is to be acted on.
type event struct{ provider, id string }

// act does it for the letters that the form names: one by its key, those of a reason, or all. Letters that come meanwhile are not touched: somebody pressed the button who did not see them.
func (d *Dashboard) act(w http.ResponseWriter, r *http.Request, a action) {
	start := time.Now()
	which, err := parseChoice(r.PostForm)
	var chosen []event
	if provider, id, ok := parseEventKey(r.PostForm.Get("key")); ok {
		chosen = []event{{provider, id}}
	} else if err != nil || r.PostForm.Get("all") == "" && !which.any() {
		d.refuse(w, r, http.StatusBadRequest, "The form says neither which dead letter nor all of them.")
		return
	} else if _, err := d.walk(r.Context(), maxScanned, func(l queue.DeadLetter) {
		if l.At.Before(start) && which.fits(l) {
			chosen = append(chosen, event{l.Provider, l.EventID})
		}
	}); err != nil {
		d.log.WarnContext(r.Context(), "dead letters could not be read", "err", err)
		d.refuse(w, r, http.StatusBadGateway, "The queue does not show its dead letters now; the log says why.")
		return
	}
	done, failed := d.actOn(r.Context(), a, chosen)
	d.log.InfoContext(r.Context(), "dead letters "+a.verb, "chosen", len(chosen), "done", done, "failed", failed, "reason", which.reason, "remote", r.RemoteAddr)
	query := url.Values{a.verb: {strconv.Itoa(done)}, "failed": {strconv.Itoa(failed)}, "left": {strconv.Itoa(len(chosen) - done - failed)}}
	http.Redirect(w, r, "/letters?"+query.Encode(), http.StatusSeeOther)
}

// actOn does it for as many as the time allows.
func (d *Dashboard) actOn(ctx context.Context, a action, chosen []event) (done, failed int) {
	ctx, cancel := context.WithTimeout(ctx, actLimit)
	defer cancel()
	var good, bad atomic.Int64
	var g errgroup.Group
	g.SetLimit(actAtOnce)
	for _, e := range chosen {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			switch err := a.do(ctx, e.provider, e.id); {
			case err == nil:
				good.Add(1)
			case ctx.Err() == nil:
				bad.Add(1)
				d.log.WarnContext(ctx, "dead letter could not be "+a.verb, "provider", e.provider, "event", e.id, "err", err)
			}
			return nil
		})
	}
	_ = g.Wait() // None of them returns an error.
	return int(good.Load()), int(bad.Load())
}

// outcome says what the last form did. The numbers stand in the address, so anybody can make up a link with others; they are read as numbers and nothing else.
func outcome(query url.Values) []string {
	var lines []string
	for _, part := range []struct{ name, text string }{
		{"retried", "%s given back to the workers."},
		{"dropped", "%s dropped."},
		{"failed", "%s could not be: they are no dead letters any more, or the log says why."},
		{"left", "%s left, as it took too long: press the button again."},
	} {
		if n, err := strconv.ParseUint(query.Get(part.name), 10, 31); err == nil && n > 0 {
			lines = append(lines, fmt.Sprintf(part.text, count(int64(n))))
		}
	}
	if lines == nil && (query.Has("retried") || query.Has("dropped")) {
		lines = []string{"There was nothing to do."}
	}
	return lines
}
