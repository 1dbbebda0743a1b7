package state

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"floodproof/reference/queue"
)

const (
	// maxAttempts is how many of the attempts on an event are kept, the newest.
	maxAttempts = 256
	// maxLook is how many events are looked at for one page of a list, so that nobody else waits for long.
	maxLook = 1 << 14
	// lapsed is the reason of an attempt whose worker said nothing.
	lapsed = "lease lapsed"
)

// note writes down how the last lease of a job ended without success.
func (e *entry) note(at int64, reason string) {
	e.attempts = newest(append(e.attempts, queue.Attempt{Number: e.leases, At: time.UnixMicro(at), Reason: reason}), maxAttempts)
}

// newest are the last of some.
func newest[T any](all []T, most int) []T { return slices.Delete(all, 0, max(0, len(all)-most)) }

// find is an event of which more than its identity is known, or nil.
func (s *Store) find(provider, id string) *entry {
	e := s.known[event{provider, id}]
	if e == nil || e.work == nil && e.packed == nil {
		return nil
	}
	return e
}

func (s *Store) event(provider, id string) Result {
	e := s.find(provider, id)
	if e == nil {
		return refused(queue.ErrUnknownEvent)
	}
	w := e.work
	if w == nil {
		w = unpack(e.packed)
	}
	found := e.event(w)
	found.Attempts, found.Acts = slices.Clone(w.attempts), slices.Clone(w.acts)
	r := Result{Events: []queue.Event{found}, Next: e.id}
	if e.finished() {
		r.Place = w.stored
	}
	return r
}

// event is what is known of an event, without its attempts and acts.
func (e *entry) event(w *work) queue.Event {
	out := queue.Event{Job: w.job, Since: time.UnixMicro(e.at), Leases: w.leases, Attempt: w.attempt}
	switch e.phase {
	case waiting:
		out.State = queue.StatePending
	case leased:
		out.State, out.Since, out.Deadline = queue.StateProcessing, time.UnixMicro(w.since), out.Since
	case dead:
		out.State = queue.StateFailed
	case done:
		out.State = queue.StateDone
	case dropped:
		out.State = queue.StateDropped
	case fresh:
	}
	return out
}

// events lists those that a command asks for, and says how far it looked.
func (s *Store) events(c *Command) (events []queue.Event, last int64) {
	last = c.ID
	types := c.Filter.TypePattern()
	size := 0
	for _, slot := range s.candidates(c) {
		if size >= maxAnswer {
			break
		}
		last = slot.id
		if slot.entry == nil {
			continue
		}
		w := slot.entry.work
		if w == nil {
			w = unpack(slot.entry.packed)
		}
		if e := slot.entry.event(w); chosen(&c.Filter, &e, types) {
			e.Payload, e.DeliveryID, e.Resource, e.Version = nil, "", "", 0
			size += Size(&e.Job)
			events = append(events, e)
		}
	}
	return events, last
}

// candidates are those that may be in the next page of a list, in the order in which they came. Those that are leased are few, and found without the others.
func (s *Store) candidates(c *Command) []slot {
	if c.Filter.State != queue.StateProcessing {
		all := s.order.after(c.ID)
		return all[:min(len(all), maxLook)]
	}
	var out []slot
	for _, l := range s.lanes {
		for _, e := range l.leased {
			if e.id > c.ID {
				out = append(out, slot{e.id, e})
			}
		}
	}
	slices.SortFunc(out, func(a, b slot) int { return cmp.Compare(a.id, b.id) })
	return out
}

// chosen reports that a filter lets an event through.
func chosen(f *queue.EventFilter, e *queue.Event, types *regexp.Regexp) bool {
	return (f.Since.IsZero() || !e.ReceivedAt.Before(f.Since)) && (f.Until.IsZero() || e.ReceivedAt.Before(f.Until)) &&
		(f.Provider == "" || f.Provider == e.Provider) && (f.State == "" || f.State == e.State) && types.MatchString(e.Type)
}

// listing is events by their numbers, which only grow.
type listing struct {
	slots []slot
	holes int
}

// slot is the place of an event in a list; nil is none any more.
type slot struct {
	id    int64
	entry *entry
}

func (l *listing) add(e *entry) { l.slots = append(l.slots, slot{e.id, e}) }

// after are the slots of higher numbers than one.
func (l *listing) after(id int64) []slot {
	i, _ := slices.BinarySearchFunc(l.slots, id, func(s slot, id int64) int {
		if s.id <= id {
			return -1
		}
		return 1
	})
	return l.slots[i:]
}

// remove leaves a hole. When most of the list are holes it is made anew without them.
func (l *listing) remove(id int64) {
	l.after(id - 1)[0].entry = nil
	if l.holes++; l.holes <= len(l.slots)/2 {
		return
	}
	full := make([]slot, 0, len(l.slots)-l.holes)
	for _, s := range l.slots {
		if s.entry != nil {
			full = append(full, s)
		}
	}
	l.slots, l.holes = full, 0
}
