package redisstreams

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// Enqueue implements queue.Queue. What can be wrong with a job is found, and its payload is compressed, before it joins a script with
// others. A server that has no memory left refuses the script as a whole. An error of ctx, or of the connection, leaves open whether the jobs were stored.
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if len(jobs) == 0 {
		return ctx.Err()
	}
	o, err := q.prepare(jobs)
	if err == nil {
		err = q.enqueues.do(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

func (q *Queue) prepare(jobs []queue.Job) (*operation, error) {
	for i := range jobs {
		job := &jobs[i]
		if err := job.Debounce.Check(job.Resource); err != nil {
			return nil, fmt.Errorf("event %q of %s: %w", job.EventID, job.Provider, err)
		}
		switch {
		case job.Provider == "" || job.EventID == "":
			return nil, fmt.Errorf("job %d of %d has the provider %q and the event id %q: both are needed to know it again", i+1, len(jobs), job.Provider, job.EventID)
		case len(job.Payload) > q.opts.MaxPayload:
			return nil, fmt.Errorf("event %q of %s has %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(job.Payload), q.opts.MaxPayload, queue.ErrTooLarge)
		}
	}
	args, bytes := make([]any, 0, 5*len(jobs)), 0
	for i := range jobs {
		job := &jobs[i]
		record := encode(job)
		args = append(args, job.Lane, ref(job.Provider, job.EventID), record, clip(job.DeadOnArrival))
		if d := job.Debounce; d.Quiet == 0 {
			args = append(args, "")
		} else {
			args = append(args, ref(job.Provider, job.Resource), ordered(job.Version), milliseconds(d.Quiet), milliseconds(d.MaxWait), int(d.Edge))
		}
		bytes += len(record) + 256
	}
	return newOperation(args, bytes), nil
}

// ordered writes a version so that texts compare as versions do: the scripts' numbers do not hold 64 bits.
func ordered(version int64) string {
	return fmt.Sprintf("%020d", uint64(version)^1<<63)
}

// sendJobs stores the jobs of a batch, or none of them.
func (q *Queue) sendJobs(batch []*operation) {
	_, err := q.run(context.Background(), q.scripts.enqueue, arguments(batch)...) // several callers share it, none of their contexts can end it
	for _, o := range batch {
		o.err = err
	}
}

func arguments(batch []*operation) []any {
	if len(batch) == 1 {
		return batch[0].args
	}
	n := 0
	for _, o := range batch {
		n += len(o.args)
	}
	args := make([]any, 0, n)
	for _, o := range batch {
		args = append(args, o.args...)
	}
	return args
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
