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
)

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
}

// Result is what a command answers. The zero value is success with nothing to tell.
type Result struct {
	// Lost: there is no such lease, or it lapsed; nothing changed.
	Lost bool
	// Refused says why a Redrive or a Drop did nothing.
	Refused string
	// Next is the number of the last of Letters, for the next page.
	Next int64
	// Deadline is that of an extended lease.
	Deadline time.Time
	Leases   []queue.Lease
	Steps    []string
	Letters  []queue.DeadLetter
	Depth    queue.Depth
}

// Apply does a command at an instant. Commands that are not known do nothing, in every store alike.
func (s *Store) Apply(now int64, c *Command) (r Result) {
	s.now = max(s.now, now)
	switch c.Op {
	case Enqueue:
		s.enqueue(c.Jobs)
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
		if err := s.redrive(c.Name, c.EventID); err != nil {
			r.Refused = err.Error()
		}
	case Drop:
		if err := s.drop(c.Name, c.EventID); err != nil {
			r.Refused = err.Error()
		}
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

func (s *Store) depth() (d queue.Depth) {
	for _, name := range slices.Sorted(maps.Keys(s.lanes)) {
		l := s.lanes[name]
		lapsed := l.leased.until(s.now, 0)
		one := queue.LaneDepth{Lane: name, Waiting: int64(len(l.waiting)) + lapsed, Leased: int64(len(l.leased)) - lapsed, Dead: l.dead, Done: l.done}
		if e := l.first(); e != nil && e.at <= s.now {
			one.Oldest = time.Duration(s.now-e.at) * time.Microsecond
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
		d.Oldest = max(d.Oldest, one.Oldest)
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
