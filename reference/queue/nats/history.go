package nats

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// Event implements queue.Historian. Of an event's attempts the newest 256 are kept, and what people did with it the last 32 times; the reasons of attempts that lie far back are left
// out where they are long.
func (q *Queue) Event(ctx context.Context, provider, eventID string) (queue.Event, error) {
	if err := q.begin(); err != nil {
		return queue.Event{}, err
	}
	defer q.calls.Done()
	hash := hashOf(provider, eventID)
	found, err := q.link.last(ctx, []string{q.subjects.anyJob(hash)})
	if err == nil && len(found) == 0 {
		err = queue.ErrUnknownEvent
	}
	var s state
	if err == nil {
		s, err = q.stateOf(ctx, hash)
	}
	var job queue.Job
	if err == nil {
		job, err = decodeJob(found[0].data)
	}
	if err != nil {
		return queue.Event{}, fmt.Errorf("look up event %q of %s: %w", eventID, provider, err)
	}
	e := event(job, found[0].at, &s)
	for _, a := range s.attempts {
		e.Attempts = append(e.Attempts, queue.Attempt{Number: a.number, At: time.UnixMicro(a.at).UTC(), Reason: a.reason})
	}
	names := acts()
	for _, a := range s.acts {
		if int(a.what) < len(names) {
			e.Acts = append(e.Acts, queue.Act{What: names[a.what], At: time.UnixMicro(a.at).UTC(), Leases: a.leases})
		}
	}
	return e, nil
}

// event puts a job and its state together. stored is when the job came.
func event(job queue.Job, stored time.Time, s *state) queue.Event {
	e := queue.Event{Job: job, State: queue.StatePending, Since: time.UnixMicro(s.at).UTC(), Leases: s.leases, Attempt: s.attempt}
	switch s.kind {
	case leased:
		e.State, e.Since, e.Deadline = queue.StateProcessing, time.UnixMicro(s.since).UTC(), time.UnixMicro(s.at).UTC()
	case done:
		e.State = queue.StateDone
	case dead:
		e.State = queue.StateFailed
	case dropped:
		e.State = queue.StateDropped
	case waiting:
	}
	if s.at == 0 { // it was never leased
		e.Since = stored.UTC()
	}
	return e
}

// Events implements queue.Historian. It reads every job that is kept, with its payload: the server has no index of anything else.
func (q *Queue) Events(ctx context.Context, filter queue.EventFilter, fn func(queue.Event) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	var stop error
	types := filter.TypePattern()
	err := q.walk(ctx, q.subjects.allJobs(), func(messages []stored) error {
		events, err := q.eventsOf(ctx, messages, filter, types)
		if err != nil {
			return err
		}
		for _, e := range events {
			if stop = fn(e); stop != nil {
				return stop
			}
		}
		return nil
	})
	if err != nil && stop == nil {
		err = fmt.Errorf("list the events: %w", err)
	}
	return err
}

// eventsOf are the events of some jobs that a filter lets through. A job that cannot be read is shown in no list but that of the dead letters.
func (q *Queue) eventsOf(ctx context.Context, messages []stored, filter queue.EventFilter, types *regexp.Regexp) ([]queue.Event, error) {
	var chosen []stored
	var jobs []queue.Job
	var filters []string
	for _, m := range messages {
		job, err := decodeJob(m.data)
		if err != nil || !chosenBy(filter, &job, types) {
			continue
		}
		_, hash, _ := q.subjects.split(m.subject)
		job.Payload, job.DeliveryID, job.Resource, job.Version = nil, "", "", 0
		chosen, jobs, filters = append(chosen, m), append(jobs, job), append(filters, q.subjects.state(hash))
	}
	found, err := q.link.last(ctx, filters)
	if err != nil {
		return nil, err
	}
	states := make(map[string]state, len(found))
	for _, m := range found {
		s, err := decodeState(m.data, m.seq)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", m.subject, err)
		}
		_, hash, _ := q.subjects.split(m.subject)
		states[hash] = s
	}
	var events []queue.Event
	for i, m := range chosen {
		_, hash, _ := q.subjects.split(m.subject)
		s := states[hash]
		events = append(events, event(jobs[i], m.at, &s))
	}
	return slices.DeleteFunc(events, func(e queue.Event) bool { return filter.State != "" && e.State != filter.State }), nil
}

// chosenBy reports that a filter lets a job through, whatever its state.
func chosenBy(f queue.EventFilter, job *queue.Job, types *regexp.Regexp) bool {
	return (f.Since.IsZero() || !job.ReceivedAt.Before(f.Since)) && (f.Until.IsZero() || job.ReceivedAt.Before(f.Until)) &&
		(f.Provider == "" || job.Provider == f.Provider) && types.MatchString(job.Type)
}

var _ queue.Historian = (*Queue)(nil)
