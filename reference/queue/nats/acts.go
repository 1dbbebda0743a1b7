package nats

import (
	"context"
	"errors"
	"fmt"

	"floodproof/reference/queue"
)

// Redrive implements queue.Redriver.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	return q.act(ctx, "redrive", provider, eventID, func(s *sheet, t *target) error {
		if t.was.kind != dead {
			return queue.ErrNotDead
		}
		return t.anew(s, t.was.acted(s.now, queue.ActRedrive))
	})
}

// Drop implements queue.Dropper.
func (q *Queue) Drop(ctx context.Context, provider, eventID string) error {
	return q.act(ctx, "drop", provider, eventID, func(s *sheet, t *target) error {
		if t.was.kind != dead {
			return queue.ErrNotDead
		}
		next := t.was.acted(s.now, queue.ActDrop)
		next.kind, next.at = dropped, s.now
		s.put(t.ref, next)
		return nil
	})
}

// Replay implements queue.Replayer. A waiting event of a debounced resource stays until its window ends.
func (q *Queue) Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error {
	return q.act(ctx, "replay", provider, eventID, func(s *sheet, t *target) error {
		if t.job == nil {
			return queue.ErrUnknownEvent
		}
		next := t.was.acted(s.now, queue.ActReplay)
		if forgetSteps {
			next.steps = nil
		}
		switch {
		case t.was.kind == leased:
			return queue.ErrInProgress
		case t.was.kind == waiting && t.was.row != "":
			next.attempt = 0
			s.put(t.ref, next)
			return nil
		case t.was.kind == waiting || t.was.seq == 0:
			if t.was.seq == 0 { // it was never leased
				next.at = s.now
			}
			s.put(t.ref, next.anew(min(next.at, s.now)))
			s.wake[t.hash] = true
			return nil
		}
		return t.anew(s, next)
	})
}

// target is the event that something is done with.
type target struct {
	ref
	// job is nil if the event is not known.
	job *queue.Job
	// damaged is why the job cannot be read; it can be dropped all the same.
	damaged error
	was     state
}

// anew makes an event due at once that nobody would work on any more.
func (t *target) anew(s *sheet, next state) error {
	switch {
	case t.damaged != nil:
		return t.damaged
	case t.job == nil:
		return fmt.Errorf("%w: the job is gone", errDamaged)
	}
	if s.rowHash != "" {
		if err := s.reopen(t.ref, t.job.Version); err != nil {
			return err
		}
	}
	next.row = s.rowHash
	s.put(t.ref, next.anew(s.now))
	s.wake[t.hash] = true
	return nil
}

// act does something with an event by hand.
func (q *Queue) act(ctx context.Context, verb, provider, eventID string, do func(*sheet, *target) error) error {
	err := q.begin()
	if err == nil {
		defer q.calls.Done()
		err = q.doAct(ctx, hashOf(provider, eventID), do)
	}
	if err != nil {
		return fmt.Errorf("%s event %q of %s: %w", verb, eventID, provider, err)
	}
	return nil
}

func (q *Queue) doAct(ctx context.Context, hash string, do func(*sheet, *target) error) error {
	t := target{ref: ref{hash: hash}}
	found, err := q.link.last(ctx, []string{q.subjects.anyJob(hash)})
	if err != nil {
		return err
	}
	var rowHash string
	if len(found) > 0 {
		job, err := decodeJob(found[0].data)
		if err != nil && !errors.Is(err, errDamaged) {
			return err
		}
		t.job, t.damaged, t.lane, rowHash = &job, err, job.Lane, rowOf(&job)
	}
	var refused error
	e := q.about(t.ref, rowHash, func(s *sheet) {
		t.was = s.state(hash)
		refused = do(s, &t)
	}).entry()
	if err := q.writer.do(ctx, newOperation(e)); err != nil {
		return err
	}
	return errors.Join(refused, e.err)
}

var (
	_ queue.Redriver = (*Queue)(nil)
	_ queue.Dropper  = (*Queue)(nil)
	_ queue.Replayer = (*Queue)(nil)
)
