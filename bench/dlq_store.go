package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// storeFlags say which queue a verb is about: that of `floodproof serve`, from the same file, variables and flags.
type storeFlags struct {
	sources serveSources
}

// storeSettings are those of serve that say where its queue is.
func storeSettings() []string { return []string{"dir", "backend", "address-file", "namespace"} }

func (f *storeFlags) register(fs *flag.FlagSet) {
	f.sources = serveSources{flags: map[string]string{}, environ: os.Environ()}
	fs.StringVar(&f.sources.file, "config", "", "YAML `file` of floodproof serve (also FLOODPROOF_CONFIG)")
	for _, s := range serveSettings(new(serveConfig)) {
		if slices.Contains(storeSettings(), s.name) {
			fs.Func(s.name, s.doc, func(text string) error { f.sources.flags[s.name] = text; return nil })
		}
	}
}

// open opens the queue, which must be there: nobody looks for dead letters in a new one.
func (f *storeFlags) open(ctx context.Context) (boardStore, error) {
	cfg, err := loadStore(f.sources)
	if err != nil {
		return nil, usagef("floodproof serve -h says where its settings come from", "%w", err)
	}
	if cfg.embedded() {
		if _, err := os.Stat(filepath.Join(cfg.dir, "queue.db")); err != nil {
			return nil, usagef("name the directory of floodproof serve with --dir or --config", "there is no queue in %s", cfg.dir)
		}
	}
	// A handle that only looks deletes nothing. That of a queue which forgets what is done unless it is told otherwise has to say what serve says, to find it.
	if !strings.HasPrefix(cfg.backend, "redis-streams") {
		cfg.retention = 0
	}
	return openServeStore(ctx, cfg)
}

// eventFilter are the flags that choose events.
type eventFilter struct {
	since, until                   time.Time
	reason, provider, kind         string
	lane                           string
	hasSince, hasUntil, hasAnyLane bool
}

// register adds the flags that all choices have.
func (f *eventFilter) register(fs *flag.FlagSet, what string) {
	at := func(into *time.Time, said *bool) func(string) error {
		return func(text string) (err error) {
			*into, err = parseMoment(text, time.Now())
			*said = err == nil
			return err
		}
	}
	fs.Func("since", "only those "+what+" at or after this `time`: 2026-11-30T06:00:00Z, 2026-11-30, or 2h or 3d ago", at(&f.since, &f.hasSince))
	fs.Func("until", "only those "+what+" before this `time`", at(&f.until, &f.hasUntil))
	fs.StringVar(&f.provider, "provider", "", "only those of this `provider`")
	fs.StringVar(&f.kind, "type", "", "only those of this event `type`, in which * stands for anything")
}

// parseMoment reads a time: a date, a date and a time, or how long ago.
func parseMoment(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	if ago, err := parseDays(text); err == nil && ago >= 0 {
		return now.Add(-ago).UTC(), nil
	}
	return time.Time{}, fmt.Errorf("%q: write a time such as 2026-11-30T06:00:00Z or 2026-11-30 (UTC), or how long ago, such as 90m, 2h or 3d", text)
}

// parseDays reads a length of time that may be in days: "30d", "1.5d", "72h".
func parseDays(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(days, 64)
		if err != nil || !(n >= 0 && n <= 100_000) {
			return 0, fmt.Errorf("%q: write a number of days, such as 30d", text)
		}
		return time.Duration(n * float64(24*time.Hour)), nil
	}
	return time.ParseDuration(text)
}

// queueFilter is it as a queue knows it.
func (f *eventFilter) queueFilter() queue.EventFilter {
	return queue.EventFilter{Since: f.since, Until: f.until, Provider: f.provider, Type: f.kind}
}

// check finds what cannot be meant.
func (f *eventFilter) check() error {
	if f.hasSince && f.hasUntil && !f.since.Before(f.until) {
		return errors.New("--since is not before --until: nothing is in between")
	}
	return nil
}
