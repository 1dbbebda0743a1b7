package state

import (
	"time"

	"floodproof/reference/queue"
)

// maxActs is how many of the acts on an event are kept, the newest.
const maxActs = 32

// act notes what somebody does with an event.
func (e *entry) act(now int64, what string) {
	e.acts = newest(append(e.acts, queue.Act{What: what, At: time.UnixMicro(now), Leases: e.leases}), maxActs)
}

// redrive makes a dead letter due, with its attempts counted from zero.
func (s *Store) redrive(provider, id string) error {
	e := s.known[event{provider, id}]
	if e == nil || e.phase != dead {
		return queue.ErrNotDead
	}
	return s.anew(e, queue.ActRedrive)
}

// drop makes a dead letter one no more.
func (s *Store) drop(provider, id string) error {
	e := s.known[event{provider, id}]
	if e == nil || e.phase != dead {
		return queue.ErrNotDead
	}
	e.act(s.now, queue.ActDrop)
	s.move(e, dropped, s.now)
	return nil
}

// replay makes an event due, whatever became of it. One that waits for the end of its window stays there.
func (s *Store) replay(c *Command) Result {
	e := s.find(c.Name, c.EventID)
	switch {
	case e == nil:
		return refused(queue.ErrUnknownEvent)
	case e.phase == leased:
		return refused(queue.ErrInProgress)
	case e.finished():
		return s.revive(e, c)
	case e.phase == dead:
		if err := s.anew(e, queue.ActReplay); err != nil {
			return refused(err)
		}
	default:
		e.act(s.now, queue.ActReplay)
		e.attempt = 0
		if e.row == nil {
			s.move(e, waiting, min(e.at, s.now))
		}
	}
	if c.Max != 0 {
		e.steps = nil
	}
	return Result{}
}

// revive replays what is finished.
func (s *Store) revive(e *entry, c *Command) Result {
	e.work = unpack(e.packed)
	if w := s.rowOf(e); w != nil && w.supersedes(e) {
		e.work = nil
		return refused(queue.ErrSuperseded)
	}
	if e.stored != 0 {
		if c.ID != e.id || len(c.Jobs) != 1 {
			r := Result{Place: e.stored, Next: e.id}
			e.work = nil
			return r
		}
		e.job.Payload = c.Jobs[0].Payload
	}
	if c.Max != 0 {
		e.steps = nil
	}
	e.packed, s.live[e.id] = nil, e
	return refused(s.anew(e, queue.ActReplay))
}

// anew makes a job due at once that nobody would work on any more, with its attempts counted from zero.
func (s *Store) anew(e *entry, what string) error {
	if w := s.rowOf(e); w != nil {
		if w.supersedes(e) {
			return queue.ErrSuperseded
		}
		w.pending, w.opened, w.due = e, s.now, s.now
	}
	e.act(s.now, what)
	e.attempt = 0
	s.move(e, waiting, s.now)
	return nil
}

// supersedes reports that a newer update was there than that of a job, or waits.
func (w *row) supersedes(e *entry) bool { return e.job.Version < w.version || w.pending != nil }
