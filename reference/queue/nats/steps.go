package nats

import (
	"context"
	"fmt"
	"slices"

	"floodproof/reference/queue"
)

// Steps implements queue.Stepper. They are in the order in which they were finished.
func (q *Queue) Steps(ctx context.Context, lease queue.Lease) ([]string, error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	s, err := q.stateOf(ctx, hashOf(lease.Provider, lease.EventID))
	if err != nil {
		return nil, fmt.Errorf("read the steps of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	return slices.Clone(s.steps), nil
}

// Finish implements queue.Stepper: the step is a part of the job's state from then on, and so is kept or refused with it. The names of all steps of a job may have 8 KiB together.
func (q *Queue) Finish(ctx context.Context, lease queue.Lease, step string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := q.finish(ctx, lease, step); err != nil {
		return fmt.Errorf("finish step %q of event %q of %s: %w", step, lease.EventID, lease.Provider, err)
	}
	return nil
}

func (q *Queue) finish(ctx context.Context, lease queue.Lease, step string) error {
	full := false
	_, _, err := q.prolong(ctx, lease, func(was state, _ int64) state {
		if slices.Contains(was.steps, step) {
			return was
		}
		size := len(step)
		for _, s := range was.steps {
			size += len(s)
		}
		if full = size > maxSteps; !full {
			was.steps = append(slices.Clip(was.steps), step)
		}
		return was
	})
	if err == nil && full {
		err = fmt.Errorf("the names of its steps have more than %d bytes: use shorter ones", maxSteps)
	}
	return err
}

var _ queue.Stepper = (*Queue)(nil)
