package redisstreams

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// maxHead is how many bytes of an event a listing reads. It is more than the texts take that stand before the payload; where it is not, the whole event is read.
const maxHead = 512

// Event implements queue.Historian. What is finished is found for as long as Options.Retention keeps it. Of one whose record is damaged what is left is returned, with an error that
// says so.
func (q *Queue) Event(ctx context.Context, provider, eventID string) (queue.Event, error) {
	if err := q.begin(); err != nil {
		return queue.Event{}, err
	}
	defer q.calls.Done()
	e, err := q.lookUp(ctx, ref(provider, eventID))
	if err != nil {
		return e, fmt.Errorf("look up event %q of %s: %w", eventID, provider, err)
	}
	return e, nil
}

func (q *Queue) lookUp(ctx context.Context, ref string) (queue.Event, error) {
	answer, err := q.run(ctx, q.scripts.event, ref)
	if err != nil {
		return queue.Event{}, err
	}
	parts, err := array(answer, 0)
	if err != nil {
		return queue.Event{}, err
	}
	if len(parts) < 2 {
		return queue.Event{}, queue.ErrUnknownEvent
	}
	d, err := readDescription(parts[0])
	if err != nil {
		return queue.Event{}, err
	}
	lines, err := array(parts[1], 0)
	if err != nil {
		return queue.Event{}, err
	}
	job, damage := decode(ref, d.body)
	e := d.event(job)
	for _, line := range lines {
		if err := addPast(&e, line); err != nil {
			return e, err
		}
	}
	if len(e.Attempts) > 0 && e.Attempts[0].Number == 0 {
		e.DeadOnArrival = e.Attempts[0].Reason
	}
	return e, damage
}

// addPast reads what the script note has written.
func addPast(e *queue.Event, line any) error {
	text, _ := line.(string)
	parts := strings.SplitN(text, " ", 4)
	if len(parts) < 4 {
		return unexpected(line)
	}
	number, err := strconv.Atoi(parts[1])
	ms, err2 := strconv.ParseInt(parts[2], 10, 64)
	if err := errors.Join(err, err2); err != nil {
		return unexpected(line)
	}
	at := time.UnixMilli(ms).UTC()
	if parts[0] == "a" {
		e.Acts = append(e.Acts, queue.Act{What: parts[3], At: at, Leases: number})
	} else {
		e.Attempts = append(e.Attempts, queue.Attempt{Number: number, At: at, Reason: parts[3]})
	}
	return nil
}

// description is what describe.lua says of an event. Its body may be the beginning of it.
type description struct {
	ref, state, body string
	since, until     int64
	leases, attempt  int64
}

func readDescription(answer any) (d description, err error) {
	parts, err := array(answer, 7)
	if err != nil {
		return d, err
	}
	for i, into := range []*int64{&d.since, &d.until, &d.leases, &d.attempt} {
		if *into, err = integer(parts[i+2]); err != nil {
			return d, err
		}
	}
	d.ref, _ = parts[0].(string)
	d.state, _ = parts[1].(string)
	d.body, _ = parts[6].(string)
	return d, nil
}

// event is it as the seam knows it.
func (d *description) event(job queue.Job) queue.Event {
	e := queue.Event{Job: job, Since: time.UnixMilli(d.since).UTC(), Leases: int(d.leases), Attempt: int(d.attempt)}
	switch d.state {
	case "leased":
		e.State, e.Deadline = queue.StateProcessing, time.UnixMilli(d.until).UTC()
	case "done":
		e.State = queue.StateDone
	case "dropped":
		e.State = queue.StateDropped
	case "dead":
		e.State = queue.StateFailed
	default:
		e.State = queue.StatePending
	}
	if d.since == 0 { // it has not left its line, and the order of coming is not kept
		e.Since = job.ReceivedAt
	}
	return e
}

// Events implements queue.Historian. Without Options.Retention there is no order of coming to go by: then it lists those that are leased, if the filter chooses their state, and is
// errors.ErrUnsupported for all others.
func (q *Queue) Events(ctx context.Context, filter queue.EventFilter, fn func(queue.Event) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	l := listing{EventFilter: filter, types: filter.TypePattern()}
	if filter.State == queue.StateProcessing {
		return q.listLeased(ctx, l, fn)
	}
	if q.opts.Retention == 0 {
		return fmt.Errorf("list the events: the queue keeps no list of them, Options.Retention is 0: %w", errors.ErrUnsupported)
	}
	for from := "-"; ; {
		answer, err := q.run(ctx, q.scripts.list, from, maxHead)
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		page, err := array(answer, 2)
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		last, _ := page[0].(string)
		if last == "" {
			return nil
		}
		from = "(" + last
		events, err := q.readEvents(ctx, l, page[1])
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		if err := each(events, fn); err != nil {
			return err
		}
	}
}

func (q *Queue) listLeased(ctx context.Context, l listing, fn func(queue.Event) error) error {
	answer, err := q.run(ctx, q.scripts.leased, maxHead)
	if err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	events, err := q.readEvents(ctx, l, answer)
	if err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	slices.SortFunc(events, func(a, b queue.Event) int { return a.ReceivedAt.Compare(b.ReceivedAt) })
	return each(events, fn)
}

func each(events []queue.Event, fn func(queue.Event) error) error {
	for _, e := range events {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// listing is a filter, ready for use.
type listing struct {
	queue.EventFilter
	types interface{ MatchString(string) bool }
}

// takes reports whether it lets an event through.
func (l *listing) takes(e *queue.Event) bool {
	return (l.Since.IsZero() || !e.ReceivedAt.Before(l.Since)) && (l.Until.IsZero() || e.ReceivedAt.Before(l.Until)) &&
		(l.Provider == "" || l.Provider == e.Provider) && (l.State == "" || l.State == e.State) && l.types.MatchString(e.Type)
}

// readEvents are those of a page that a listing lets through. One that is damaged is listed without what cannot be read of it.
func (q *Queue) readEvents(ctx context.Context, l listing, page any) (events []queue.Event, err error) {
	rows, err := array(page, 0)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		d, err := readDescription(row)
		if err != nil {
			return nil, err
		}
		job, _, _, damage := decodeHead(d.ref, d.body)
		if damage != nil && len(d.body) == maxHead { // its texts are long, or it is damaged
			whole, err := q.lookUp(ctx, d.ref)
			if err != nil && !errors.Is(err, queue.ErrUnknownEvent) && !errors.Is(err, errDamaged) {
				return nil, err
			}
			job = whole.Job
			job.Provider, job.EventID, _ = splitRef(d.ref)
		}
		e := d.event(job)
		e.DeliveryID, e.Resource, e.Version, e.Payload, e.Debounce = "", "", 0, nil, queue.Debounce{}
		if l.takes(&e) {
			events = append(events, e)
		}
	}
	return events, nil
}

var _ queue.Historian = (*Queue)(nil)
