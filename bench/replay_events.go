package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue"
	"floodproof/reports/wording"
)

const replayEventsSynopsis = "replay-events --since T [--type GLOB] [--yes] [flags]"

// replayEventsDoc is printed above the flags of `floodproof replay-events`.
const replayEventsDoc = `
Works on events of floodproof serve again, from the payloads that were received:
after a bug in a handler, or when a downstream has lost something. It works
beside a pipeline that runs, and finds its queue by the same --config, variables
or flags. Without --yes it only says what it would do.

An event that is replayed is due at once, with its attempts at zero. The
downstream is called with the same idempotency key as before: one that remembers
keys answers and does nothing twice; one that has forgotten them, or never knew
any, does the work again, and that is what this verb is for. Of an event with
steps those that are finished stay finished, unless you say --forget-steps.

Replayed are done events and dead letters, or those of the one --state. Never
replayed are events that a worker holds (its lease lapses by itself if the
worker is gone), updates that a newer one of the same resource has followed, and
events that the retention has deleted. Dropped ones are replayed with --state
dropped only.

exit status:
  0 done, or shown   1 not all of it could be done
  2 usage, or a queue that cannot be opened

`

// replayEventsFlags are the flags of `floodproof replay-events`.
type replayEventsFlags struct {
	store                          storeFlags
	choice                         eventFilter
	state                          string
	yes, dryRun, forgetSteps, json bool
	stdout, progress               io.Writer
}

func (f *replayEventsFlags) register(fs *flag.FlagSet) {
	f.store.register(fs)
	f.choice.register(fs, "received")
	fs.StringVar(&f.state, "state", "", "only those in this `state`: pending, processing, done, failed or dropped")
	fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and do nothing; so it is without --yes too")
	fs.BoolVar(&f.yes, "yes", false, "do it")
	fs.BoolVar(&f.forgetSteps, "forget-steps", false, "do the finished steps of an event again too")
	fs.BoolVar(&f.json, "json", false, "print what was found, and done, as one line of JSON")
}

// replayEventsVerb works on events again.
func replayEventsVerb(ctx context.Context, p *Program, args []string) (int, error) {
	f := replayEventsFlags{stdout: p.Stdout, progress: p.Stderr}
	fs := p.flags("replay-events", replayEventsSynopsis)
	f.register(fs)
	p.help(fs, replayEventsSynopsis+"\n"+strings.TrimRight(replayEventsDoc, "\n"))
	rest, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if err := f.check(rest); err != nil {
		return ExitUsage, usagef("usage: floodproof "+replayEventsSynopsis, "replay-events: %w", err)
	}
	return withStore(ctx, &f.store, "replay-events", f.run)
}

func (f *replayEventsFlags) check(rest []string) error {
	states := queue.States()
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected arguments %q", rest)
	case !f.choice.hasSince:
		return errors.New("say --since when: everything that was ever received is rarely meant (--since 1970-01-01 is)")
	case f.yes && f.dryRun:
		return errors.New("--yes and --dry-run exclude each other")
	case f.state != "" && !slices.Contains(states, queue.State(f.state)):
		return fmt.Errorf("--state %q: use one of %v", f.state, states)
	}
	return f.choice.check()
}

// replayable reports whether events in a state are replayed.
func (f *replayEventsFlags) replayable(s queue.State) bool {
	if f.state != "" {
		return s == queue.State(f.state) && s != queue.StateProcessing
	}
	return s == queue.StateDone || s == queue.StateFailed
}

// run counts the events and then, if it may, replays them. In between others come; what was received after the beginning is not touched.
func (f *replayEventsFlags) run(ctx context.Context, q boardStore) (int, error) {
	historian, ok1 := q.(queue.Historian)
	replayer, ok2 := q.(queue.Replayer)
	if !ok1 || !ok2 {
		return ExitUsage, errors.New("this backend does not keep what was received, so that nothing can be worked on again but its dead letters: floodproof dlq redrive")
	}
	filter := f.choice.queueFilter()
	filter.State = queue.State(f.state)
	if now := time.Now(); filter.Until.IsZero() || filter.Until.After(now) {
		filter.Until = now
	}
	found, err := f.count(ctx, historian, filter)
	if err != nil {
		return ExitFail, err
	}
	if f.yes {
		if err := f.replay(ctx, replaying{historian, replayer, filter}, found); err != nil {
			return ExitFail, err
		}
	}
	if err := f.report(found); err != nil {
		return ExitFail, err
	}
	if found.Failed > 0 {
		return ExitFail, errors.Join(append(found.errs, fmt.Errorf("%d could not be replayed", found.Failed))...)
	}
	return ExitPass, nil
}

// replayGroup are the events of one state and type.
type replayGroup struct {
	State  queue.State `json:"state"`
	Type   string      `json:"type"`
	Events int         `json:"events"`
}

// replayReport is what was found, and done.
type replayReport struct {
	Since      time.Time     `json:"since"`
	Until      time.Time     `json:"until"`
	Groups     []replayGroup `json:"groups"`
	Replayable int           `json:"replayable"`
	Replayed   int           `json:"replayed"`
	// Skipped are those that may not be replayed: a worker has them by now, or a newer update followed.
	Skipped int  `json:"skipped"`
	Failed  int  `json:"failed"`
	DryRun  bool `json:"dry_run"`
	errs    []error
}

// maxGroups is how many types are told apart: they are texts of strangers.
const maxGroups = 1000

func (f *replayEventsFlags) count(ctx context.Context, h queue.Historian, filter queue.EventFilter) (*replayReport, error) {
	type key struct {
		state queue.State
		kind  string
	}
	r := &replayReport{Since: filter.Since, Until: filter.Until.UTC(), DryRun: !f.yes, Groups: []replayGroup{}}
	counts := map[key]int{}
	err := h.Events(ctx, filter, func(e queue.Event) error {
		k := key{e.State, e.Type}
		if _, known := counts[k]; !known && len(counts) >= maxGroups {
			k.kind = "(others)"
		}
		counts[k]++
		if f.replayable(e.State) {
			r.Replayable++
		}
		return nil
	})
	for _, k := range slices.SortedFunc(maps.Keys(counts), func(a, b key) int { return cmp.Or(cmp.Compare(a.state, b.state), cmp.Compare(a.kind, b.kind)) }) {
		r.Groups = append(r.Groups, replayGroup{k.state, k.kind, counts[k]})
	}
	return r, err
}

// replaying is what a replay needs.
type replaying struct {
	queue.Historian
	queue.Replayer
	filter queue.EventFilter
}

// replay replays what the filter lets through, oldest first, give or take those that are in hand at once.
func (f *replayEventsFlags) replay(ctx context.Context, from replaying, r *replayReport) error {
	all, skipped := &tally{}, 0
	var g errgroup.Group
	g.SetLimit(actAtOnce)
	err := from.Events(ctx, from.filter, func(e queue.Event) error {
		if !f.replayable(e.State) {
			return nil
		}
		g.Go(func() error {
			err := from.Replay(ctx, e.Provider, e.EventID, f.forgetSteps)
			if errors.Is(err, queue.ErrInProgress) || errors.Is(err, queue.ErrSuperseded) || errors.Is(err, queue.ErrUnknownEvent) {
				all.mu.Lock()
				skipped++
				all.mu.Unlock()
				return nil
			}
			all.add(err)
			return nil
		})
		return nil
	})
	_ = g.Wait() // none of them returns an error
	r.Replayed, r.Skipped, r.Failed, r.errs = all.done, skipped, all.failed, all.errs
	return err
}

func (f *replayEventsFlags) report(r *replayReport) error {
	if f.json {
		return json.NewEncoder(f.stdout).Encode(r)
	}
	w := tabwriter.NewWriter(f.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "STATE\tTYPE\tEVENTS\t") // its error is that of Flush
	for _, g := range r.Groups {
		note := ""
		if !f.replayable(g.State) {
			note = "left alone"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", g.State, printable(g.Type), g.Events, note)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	text := fmt.Sprintf("%s would be replayed; --yes does it\n", wording.Plural(r.Replayable, "event"))
	if f.yes {
		text = fmt.Sprintf("%d of %s replayed\n", r.Replayed, wording.Plural(r.Replayable, "event"))
		if r.Skipped > 0 {
			text += fmt.Sprintf("%d may not be: a worker has them, or a newer update followed\n", r.Skipped)
		}
	}
	_, err := io.WriteString(f.progress, text)
	return err
}
