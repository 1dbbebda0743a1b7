package state

import (
	"maps"
	"slices"
	"sort"
	"time"

	"floodproof/reference/queue"
)

// Op is what a command does.
type Op uint8

// The operations and the fields of a Command that they read. Their numbers are part of the binary form.
const (
	// Enqueue stores Jobs, but for those whose event is known.
	Enqueue Op = 1
	// Lease leases up to Max jobs of the lane Name for the length For.
	Lease Op = 2
	// GiveBack undoes the lease ID and Token of EventID, which nobody got to see; the attempt does not count.
	GiveBack Op = 3
	// Done ends the lease ID and Token of EventID.
	Done Op = 4
	// Retry ends the lease for another one after For, for the reason Name.
	Retry Op = 5
	// Dead ends the lease with a dead letter, for the reason Name.
	Dead Op = 6
	// Extend makes the lease last For from now.
	Extend Op = 7
	// Finish notes the step Name of the leased job.
	Finish Op = 8
	// Redrive makes the dead letter EventID of the provider Name due.
	Redrive Op = 9
	// Steps reads the finished steps of the job ID.
	Steps Op = 10
	// Depth reads what the store holds.
	Depth Op = 11
	// Letters reads dead letters after the one numbered ID, as many as fit an answer.
	Letters Op = 12
	// Drop makes the dead letter EventID of the provider Name one no more.
	Drop Op = 13
	// Replay makes the event EventID of the provider Name due, whatever became of it, and forgets its steps if Max is not 0. Where its payload is in a log it is asked for
	// (Result.Place), and comes with a second command as that of the one of Jobs, for the event with the number ID.
	Replay Op = 14
	// Event looks up the event EventID of the provider Name.
	Event Op = 15
	// Events lists the events after the one numbered ID that Filter lets through, as many as fit an answer.
	Events Op = 16
	// Retain forgets what was finished longer than For ago, and has the store keep what is finished until then.
	Retain Op = 17
)

// Asks reports that an operation only reads, so that it makes no difference to the store whether it is done.
func (o Op) Asks() bool {
	switch o {
	case Steps, Depth, Letters, Event, Events:
		return true
	case Enqueue, Lease, GiveBack, Done, Retry, Dead, Extend, Finish, Redrive, Drop, Replay, Retain:
	}
	return false
}

// Command is one call. Which fields it needs is said at its Op; the others are zero.
//
// A lease is named by its event too, although ID and Token are unique: a store whose last commands were lost gives the same numbers out again, for other jobs, and whoever
// has a lease from before must not end one of these. An empty EventID fits all, as commands had none at first.
type Command struct {
	Op        Op
	Max       int
	ID, Token int64
	For       time.Duration
	Name      string
	EventID   string
	Jobs      []queue.Job
	Filter    queue.EventFilter
	// Place is where the command stands in a log from which it can be read again, 0 if in none: payloads that are there do not stay here once their jobs are finished. It is
	// no part of the binary form.
	Place int64
}

// Result is what a command answers. The zero value is success with nothing to tell.
type Result struct {
	// Lost: there is no such lease, or it lapsed; nothing changed.
	Lost bool
	// Refused says why a Redrive, a Drop, a Replay or an Event did nothing.
	Refused string
	// Next is the number of the last of Letters, or that was looked at for Events, for the next page: after the last it is that of the command. Of one event it is the number.
	Next int64
	// Place is where the payload of an event is that is not here, 0 if it is. A Replay has then done nothing yet.
	Place int64
	// Deadline is that of an extended lease.
	Deadline time.Time
	Leases   []queue.Lease
	Steps    []string
	Letters  []queue.DeadLetter
	Events   []queue.Event
	Depth    queue.Depth
}

// Apply does a command at an instant. Commands that are not known do nothing, in every store alike.
func (s *Store) Apply(now int64, c *Command) (r Result) {
	s.now = max(s.now, now)
	switch c.Op {
	case Enqueue:
		s.enqueue(c)
	case Lease:
		r.Leases = s.lease(c.Name, c.Max, c.For)
	case GiveBack:
		s.giveBack(c)
	case Done, Retry, Dead:
		r.Lost = !s.settle(c)
	case Extend:
		e := s.held(c)
		if r.Lost = e == nil; !r.Lost {
			s.move(e, leased, s.now+max(c.For.Microseconds(), 1))
			r.Deadline = time.UnixMicro(e.at)
		}
	case Finish:
		e := s.held(c)
		if r.Lost = e == nil; !r.Lost && !slices.Contains(e.steps, c.Name) {
			e.steps = append(e.steps, c.Name)
		}
	case Redrive:
		r = refused(s.redrive(c.Name, c.EventID))
	case Drop:
		r = refused(s.drop(c.Name, c.EventID))
	case Replay:
		r = s.replay(c)
	case Event:
		r = s.event(c.Name, c.EventID)
	case Events:
		r.Events, r.Next = s.events(c)
	case Retain:
		s.retain(c.For)
	case Steps:
		if e := s.live[c.ID]; e != nil {
			r.Steps = slices.Clone(e.steps)
		}
	case Depth:
		r.Depth = s.depth()
	case Letters:
		r.Letters, r.Next = s.letters(c.ID)
	}
	return r
}

// refused is the result of what may be refused.
func refused(err error) (r Result) {
	if err != nil {
		r.Refused = err.Error()
	}
	return r
}

func (s *Store) depth() (d queue.Depth) {
	for _, name := range slices.Sorted(maps.Keys(s.lanes)) {
		l := s.lanes[name]
		lapsed := l.leased.until(s.now, 0)
		one := queue.LaneDepth{Lane: name, Waiting: int64(len(l.waiting)) + lapsed, Leased: int64(len(l.leased)) - lapsed, Dead: l.dead, Done: l.done, Expired: l.expired}
		if e := l.first(); e != nil && e.at <= s.now {
			one.Oldest = time.Duration(s.now-e.at) * time.Microsecond
		}
		for _, e := range l.leased {
			if e.at > s.now {
				one.Held = max(one.Held, time.Duration(s.now-e.since)*time.Microsecond)
			}
		}
		d.Lanes = append(d.Lanes, one)
	}
	return total(d.Lanes)
}

// total sums lanes up.
func total(lanes []queue.LaneDepth) queue.Depth {
	d := queue.Depth{Lanes: lanes}
	for _, one := range lanes {
		d.Waiting += one.Waiting
		d.Leased += one.Leased
		d.Dead += one.Dead
		d.Done += one.Done
		d.Expired += one.Expired
		d.Oldest, d.Held = max(d.Oldest, one.Oldest), max(d.Held, one.Held)
	}
	return d
}

func (s *Store) letters(after int64) (letters []queue.DeadLetter, last int64) {
	last = after
	size := 0
	for _, e := range s.dead[sort.Search(len(s.dead), func(i int) bool { return s.dead[i].rank > after }):] {
		if size >= maxAnswer {
			break
		}
		size += Size(&e.job) + len(e.reason)
		letters = append(letters, queue.DeadLetter{Job: e.job, Reason: e.reason, Attempts: e.attempt, At: time.UnixMicro(e.at)})
		last = e.rank
	}
	return letters, last
}
