package nats

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// Enqueue implements queue.Queue. What can be wrong with a job is found, and its payload is compressed, before it joins a batch
// with others. An error of ctx leaves open whether the jobs were stored. All jobs of a call are in one batch, of which the server takes 1000 messages unless
// its jetstream limits say more (limits { batch { max_msgs } }). A job is one message, one that is debounced two or three.
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
	o := newOperation(entries...)
	o.whole = true
	err = q.writer.do(ctx, o)
	if err == nil {
		err = failure(entries)
	}
	if hasCode(err, codeTooLarge) {
		err = fmt.Errorf("%d jobs are too many for one batch of this server, which raises it with limits { batch { max_msgs } }: %w", len(jobs), err)
	}
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

// pack makes an entry of each job, but of those that are debounced one for each row.
func (q *Queue) pack(jobs []queue.Job) ([]*entry, error) {
	entries := make([]*entry, 0, len(jobs))
	seen := make(map[string]bool, len(jobs))
	rows := make(map[string]*sheet)
	var order []*sheet
	for i := range jobs {
		job := &jobs[i]
		if job.Provider == "" || job.EventID == "" {
			return nil, fmt.Errorf("job %d of %d has the provider %q and the event id %q: both are needed to know it again", i+1, len(jobs), job.Provider, job.EventID)
		}
		hash := hashOf(job.Provider, job.EventID)
		if seen[hash] {
			continue
		}
		seen[hash] = true
		body, err := q.packOne(job)
		if err != nil {
			return nil, fmt.Errorf("event %q of %s: %w", job.EventID, job.Provider, err)
		}
		rowHash := rowOf(job)
		if rowHash == "" || job.DeadOnArrival != "" {
			entries = append(entries, q.store(job, hash, body))
			continue
		}
		s := rows[rowHash]
		if s == nil {
			s = &sheet{subjects: q.subjects, rowHash: rowHash}
			rows[rowHash], order = s, append(order, s)
		}
		s.arrivals = append(s.arrivals, &arrival{ref: ref{hash, job.Lane}, version: job.Version, debounce: job.Debounce, body: body})
	}
	for _, s := range order {
		entries = append(entries, s.entry())
	}
	return entries, nil
}

// packOne packs a job in which nothing is wrong. Nothing else of it is used after the caller has left.
func (q *Queue) packOne(job *queue.Job) ([]byte, error) {
	switch {
	case !utf8.ValidString(job.Lane):
		return nil, fmt.Errorf("the lane is %q: use valid UTF-8", job.Lane)
	case len(job.Payload) > q.opts.MaxPayload:
		return nil, fmt.Errorf("the payload has %d bytes, the limit is %d: %w", len(job.Payload), q.opts.MaxPayload, queue.ErrTooLarge)
	}
	if err := job.Debounce.Check(job.Resource); err != nil {
		return nil, err
	}
	body := encodeJob(job)
	if others := len(body) - len(job.Payload); others > envelope-1024 {
		return nil, fmt.Errorf("its other fields have %d bytes, the limit is %d: %w", others, envelope-1024, queue.ErrTooLarge)
	}
	return body, nil
}

// store is the entry that stores a job, unless its event is known. A job that is dead on arrival gets its state and its letter in the same batch.
func (q *Queue) store(job *queue.Job, hash string, body []byte) *entry {
	born, lane, reason, rowHash := job.DeadOnArrival != "", job.Lane, clip(job.DeadOnArrival), rowOf(job)
	return &entry{
		keys: []string{"q" + hash}, filter: q.subjects.event(hash), bytes: len(body) + 256, most: 3,
		build: func(now int64) []message {
			if !born {
				return []message{{subject: q.subjects.job(hash, laneToken(lane)), data: body}}
			}
			s := state{kind: dead, at: now, reason: reason, row: rowHash}
			s.attempts = s.noted(now, reason)
			letter := s.encode()
			return []message{{subject: q.subjects.job(hash, noLane), data: body}, {subject: q.subjects.state(hash), data: letter}, {subject: q.subjects.dead(hash), data: letter}}
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
