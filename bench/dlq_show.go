package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"floodproof/reference/queue"
	"floodproof/reports/wording"
)

// show prints one event. A queue that knows of all events shows one in any state, if its provider is said.
func (f *dlqFlags) show(ctx context.Context, q boardStore) (int, error) {
	e, err := f.find(ctx, q)
	if err != nil {
		return ExitFail, err
	}
	if f.raw {
		_, err := f.stdout.Write(e.Payload)
		return ExitPass, err
	}
	if f.json {
		l := queue.DeadLetter{Job: e.Job, Attempts: e.Attempt}
		if e.State == queue.StateFailed {
			l.At = e.Since
		}
		if n := len(e.Attempts); n > 0 {
			l.Reason = e.Attempts[n-1].Reason
		}
		j := newLetterJSON(&l)
		j.History = history(&e)
		j.setPayload(e.Payload)
		return ExitPass, j.line(f.stdout)
	}
	return ExitPass, f.print(&e)
}

// find finds the event that is to be shown.
func (f *dlqFlags) find(ctx context.Context, q boardStore) (queue.Event, error) {
	name := f.choice.names[0]
	historian, ok := q.(queue.Historian)
	if ok {
		provider, id := f.choice.provider, name
		if first, rest, cut := strings.Cut(name, "/"); provider == "" && cut {
			provider, id = first, rest
		}
		if provider != "" {
			e, err := historian.Event(ctx, provider, id)
			if !errors.Is(err, queue.ErrUnknownEvent) {
				return e, err
			}
		}
	}
	var letter queue.DeadLetter
	_, err := f.choice.choose(ctx, q, func(l queue.DeadLetter) error {
		letter = l
		return nil
	})
	switch {
	case errors.Is(err, queue.ErrNotDead) && ok:
		return queue.Event{}, fmt.Errorf("%w: an event in another state is found with its provider, as provider/id", err)
	case err != nil:
		return queue.Event{}, err
	case ok:
		return historian.Event(ctx, letter.Provider, letter.EventID)
	}
	return queue.Event{
		Job: letter.Job, State: queue.StateFailed, Since: letter.At, Leases: letter.Attempts, Attempt: letter.Attempts,
		Attempts: []queue.Attempt{{Number: letter.Attempts, At: letter.At, Reason: letter.Reason}},
	}, nil
}

// print prints an event for people.
func (f *dlqFlags) print(e *queue.Event) error {
	w := tabwriter.NewWriter(f.stdout, 0, 0, 2, ' ', 0)
	for _, fact := range [][2]string{
		{"event", e.EventID}, {"provider", e.Provider}, {"type", e.Type}, {"lane", laneTitle(e.Lane)}, {"resource", e.Resource}, {"version", fmt.Sprint(e.Version)},
		{"delivery", e.DeliveryID}, {"state", fmt.Sprintf("%s since %s", e.State, e.Since.UTC().Format(time.RFC3339))},
		{"attempts", fmt.Sprintf("%d, of %d in all", e.Attempt, e.Leases)},
	} {
		if fact[1] != "" {
			_, _ = fmt.Fprintf(w, "%s\t%s\n", fact[0], printable(fact[1])) // its error is that of Flush
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(f.stdout) // as above
	for _, m := range history(e) {
		what := m.What
		if m.Attempt > 0 {
			what = fmt.Sprintf("attempt %d %s", m.Attempt, m.What)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", m.At.Format(time.RFC3339Nano), what, printable(m.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f.stdout, "\npayload, %s:\n%s\n", wording.Plural(len(e.Payload), "byte"), printableBlock(e.Payload))
	return err
}
