package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"floodproof/reference/queue"
	"floodproof/reports/wording"
)

// actAtOnce is how many events something is done with at once: they share writes of the queue. maxComplaints is how many failures are told one by one.
const (
	actAtOnce     = 16
	maxComplaints = 10
)

// redrive makes letters due again.
func (f *dlqFlags) redrive(ctx context.Context, q boardStore) (int, error) {
	r, ok := q.(queue.Redriver)
	if !ok {
		return ExitUsage, errors.New("this backend cannot give dead letters back")
	}
	chosen, err := f.choice.choose(ctx, q, func(queue.DeadLetter) error { return nil })
	if err != nil {
		return ExitFail, err
	}
	if len(chosen) > 1 && !f.yes {
		return ExitUsage, usagef("--yes does it; floodproof dlq list shows them with the same flags", "%s would be redriven, and none was", wording.Plural(len(chosen), "dead letter"))
	}
	return f.each(ctx, chosen, "redriven", r.Redrive)
}

// drop writes letters down and then takes them off the list.
func (f *dlqFlags) drop(ctx context.Context, q boardStore) (int, error) {
	d, ok := q.(queue.Dropper)
	if !ok {
		return ExitUsage, errors.New("this backend cannot drop dead letters")
	}
	if !f.yes {
		chosen, err := f.choice.choose(ctx, q, func(queue.DeadLetter) error { return nil })
		if err != nil {
			return ExitFail, err
		}
		return ExitUsage, usagef("--yes does it; floodproof dlq list shows them with the same flags", "%s would be dropped for good, and none was", wording.Plural(len(chosen), "dead letter"))
	}
	out, done, err := f.record()
	if err != nil {
		return ExitUsage, err
	}
	historian, _ := q.(queue.Historian)
	chosen, err := f.choice.choose(ctx, q, func(l queue.DeadLetter) error { return record(ctx, historian, out, &l) })
	// Nothing is dropped before all of it is written down, and a file is on the disk.
	if err := errors.Join(err, done()); err != nil {
		return ExitFail, fmt.Errorf("nothing was dropped: %w", err)
	}
	return f.each(ctx, chosen, "dropped", d.Drop)
}

// record is where what is dropped is written, and what makes it safe.
func (f *dlqFlags) record() (io.Writer, func() error, error) {
	if f.out == "" {
		return f.stdout, func() error { return nil }, nil
	}
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return file, func() error { return errors.Join(file.Sync(), file.Close()) }, nil
}

// record writes one letter down, with its history where the queue has it.
func record(ctx context.Context, historian queue.Historian, out io.Writer, l *queue.DeadLetter) error {
	j := newLetterJSON(l)
	if historian != nil {
		e, err := historian.Event(ctx, l.Provider, l.EventID)
		if err == nil {
			j.History = history(&e)
		}
	}
	j.setPayload(l.Payload)
	return j.line(out)
}

// each does something with all that were chosen. What fails does not keep the others from it.
func (f *dlqFlags) each(ctx context.Context, chosen []chosenLetter, done string, do func(ctx context.Context, provider, id string) error) (int, error) {
	t := &tally{}
	var g errgroup.Group
	g.SetLimit(actAtOnce)
	for _, c := range chosen {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error { t.add(do(ctx, c.provider, c.id)); return nil })
	}
	_ = g.Wait() // none of them returns an error
	_, err := fmt.Fprintf(f.progress, "%d of %s %s\n", t.done, wording.Plural(len(chosen), "dead letter"), done)
	if failed := len(chosen) - t.done; failed > 0 {
		err = errors.Join(append(t.errs, fmt.Errorf("%d could not be %s", failed, done))...)
		return ExitFail, err
	}
	return ExitPass, err
}

// tally counts what became of things done at the same time.
type tally struct {
	mu           sync.Mutex
	done, failed int
	errs         []error // the first ones
}

func (t *tally) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.done++
		return
	}
	t.failed++
	if len(t.errs) < maxComplaints {
		t.errs = append(t.errs, err)
	}
}
