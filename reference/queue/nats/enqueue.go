package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// Enqueue implements queue.Queue. What can be wrong with a job is found, and its payload is compressed, before it joins a batch
// with others. An error of ctx leaves open whether the jobs were stored. All jobs of a call are in one batch, of which the server takes 1000 messages unless
// its jetstream limits say more (limits { batch { max_msgs } }).
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if len(jobs) == 0 {
		return ctx.Err()
	}
	entries, err := q.pack(jobs)
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	err = q.writer.do(ctx, newOperation(entries...))
	if hasCode(err, codeTooLarge) {
		err = fmt.Errorf("%d jobs are too many for one batch of this server, which raises it with limits { batch { max_msgs } }: %w", len(jobs), err)
	}
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

func (q *Queue) pack(jobs []queue.Job) ([]*entry, error) {
	entries := make([]*entry, 0, len(jobs))
	seen := make(map[string]bool, len(jobs))
	for i := range jobs {
		job := &jobs[i]
		switch {
		case job.Provider == "" || job.EventID == "":
			return nil, fmt.Errorf("job %d of %d has the provider %q and the event id %q: both are needed to know it again", i+1, len(jobs), job.Provider, job.EventID)
		case !utf8.ValidString(job.Lane):
			return nil, fmt.Errorf("event %q of %s has the lane %q: use valid UTF-8", job.EventID, job.Provider, job.Lane)
		case job.Debounce != queue.Debounce{}:
			return nil, fmt.Errorf("event %q of %s is to be debounced, which this queue does not do: send it without, or use a queue that claims it", job.EventID, job.Provider)
		case len(job.Payload) > q.opts.MaxPayload:
			return nil, fmt.Errorf("event %q of %s has %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(job.Payload), q.opts.MaxPayload, queue.ErrTooLarge)
		}
		hash := hashOf(job.Provider, job.EventID)
		if seen[hash] {
			continue
		}
		seen[hash] = true
		body := encodeJob(job)
		if len(body)-len(job.Payload) > envelope-1024 {
			return nil, fmt.Errorf("event %q of %s: its other fields have %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(body)-len(job.Payload), envelope-1024, queue.ErrTooLarge)
		}
		entries = append(entries, q.store(job, hash, body))
	}
	return entries, nil
}

// store is the entry that stores a job, unless its event is known. A job that is dead on arrival gets its state and its letter in the same batch.
func (q *Queue) store(job *queue.Job, hash string, body []byte) *entry {
	born, lane, reason := job.DeadOnArrival != "", job.Lane, clip(job.DeadOnArrival)
	return &entry{
		key: "q" + hash, filter: q.subjects.event(hash), bytes: len(body) + 256,
		build: func(now int64) []message {
			if !born {
				return []message{{q.subjects.job(hash, laneToken(lane)), body}}
			}
			letter := (&state{kind: dead, at: now, reason: reason}).encode()
			return []message{{q.subjects.job(hash, noLane), body}, {q.subjects.state(hash), letter}, {q.subjects.dead(hash), letter}}
		},
		count: func(t tally) {
			t.change(lane, func(l *laneTally) {
				l.Stored++
				if born {
					l.Dead++
				}
			})
		},
	}
}

// maxReason bounds what is kept of a reason, in bytes: it is read by people, and some handlers return whole pages.
const maxReason = 4096

func clip(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	cut := maxReason
	for cut > 0 && !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return strings.Clone(reason[:cut]) + "..."
}

// errNoLetter: there is nothing to redrive.
var errNoLetter = errors.New("there is no such dead letter")

// Redrive makes a dead letter due again; its attempts go on counting. An event that is unknown or not dead is an error.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := q.redrive(ctx, hashOf(provider, eventID)); err != nil {
		return fmt.Errorf("redrive event %q of %s: %w", eventID, provider, err)
	}
	return nil
}

func (q *Queue) redrive(ctx context.Context, hash string) error {
	was, err := q.stateOf(ctx, hash)
	if err != nil {
		return err
	}
	if was.kind != dead {
		return errNoLetter
	}
	jobs, err := q.link.last(ctx, []string{q.subjects.anyJob(hash)})
	if err != nil {
		return err
	}
	if len(jobs) != 1 {
		return fmt.Errorf("%w: its job is gone", errDamaged)
	}
	job, err := decodeJob(jobs[0].data)
	if err != nil {
		return err
	}
	e := q.change(job.Lane, hash, was.seq)
	e.build = func(now int64) []message {
		next := (&state{kind: waiting, attempt: was.attempt, at: now}).encode()
		return []message{{q.subjects.state(hash), next}, {q.subjects.ready(hash, laneToken(job.Lane)), next}, {q.subjects.dead(hash), nil}}
	}
	e.count = func(t tally) { t.change(job.Lane, func(l *laneTally) { l.Dead-- }) }
	if err := q.writer.do(ctx, newOperation(e)); err != nil {
		return err
	}
	if e.lost {
		return errNoLetter
	}
	return nil
}

// change is an entry that follows a state with that sequence; 0 is that there is none.
func (q *Queue) change(lane, hash string, after uint64) *entry {
	subject := q.subjects.state(hash)
	return &entry{key: "s" + hash, filter: subject, expect: after, bytes: 256, count: func(tally) {}}
}
