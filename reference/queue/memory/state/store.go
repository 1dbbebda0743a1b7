package state

import (
	"container/heap"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// maxAnswer bounds the jobs of one answer in bytes; one job may be larger and then comes alone.
const maxAnswer = 16 << 20

// Store is the jobs of one queue. It is made by New, and used by one goroutine at a time. Instants are microseconds since 1970; one that is before an earlier
// one counts as that.
type Store struct {
	// Woke, if not nil, is told the name of a lane in which something may be leased earlier than before. It must not call the store.
	Woke func(lane string)

	now   int64
	known map[event]*entry // nil: done or dropped, and only its identity is kept
	live  map[int64]*entry
	lanes map[string]*lane
	rows  map[event]*row // by provider and resource
	dead  []*entry       // in the order of their ranks
	ids   int64
	token int64
	ranks int64
}

// event identifies an event, or a resource of a provider.
type event struct{ provider, id string }

type phase uint8

const (
	fresh phase = iota
	waiting
	leased
	dead
	done
	dropped
)

// entry is one job that is not done.
type entry struct {
	job     queue.Job
	id      int64
	token   int64
	attempt int
	phase   phase
	at      int64 // due, lapsing or dead, by phase
	was     int64 // at, before it was leased
	rank    int64 // orders what has the same at
	place   int   // in its line
	reason  string
	steps   []string
	row     *row // of a debounced job
}

// lane is one line of jobs.
type lane struct {
	waiting, leased line
	dead, done      int64
}

// New makes an empty store, whose jobs and leases have numbers above first. Two stores that follow each other without a memory of each other are kept apart by it: a
// lease of the one is then none of the other's.
func New(first int64) *Store {
	return &Store{
		known: make(map[event]*entry), live: make(map[int64]*entry), lanes: make(map[string]*lane), rows: make(map[event]*row),
		ids: first, token: first,
	}
}

// Next is when something of a lane can be leased next, which may be in the past; false without any.
func (s *Store) Next(lane string) (at int64, ok bool) {
	l := s.lanes[lane]
	if l == nil {
		return 0, false
	}
	if e := l.first(); e != nil {
		return e.at, true
	}
	return 0, false
}

// first is what can be leased first: the oldest that is due, whether it waited or its lease lapsed.
func (l *lane) first() *entry {
	switch {
	case len(l.waiting) == 0 && len(l.leased) == 0:
		return nil
	case len(l.waiting) == 0:
		return l.leased[0]
	case len(l.leased) == 0 || l.waiting[0].before(l.leased[0]):
		return l.waiting[0]
	}
	return l.leased[0]
}

func (s *Store) lane(name string) *lane {
	l := s.lanes[name]
	if l == nil {
		l = new(lane)
		s.lanes[name] = l
	}
	return l
}

// move takes a job from where it is to where it shall be.
func (s *Store) move(e *entry, to phase, at int64) {
	l := s.lane(e.job.Lane)
	before := l.first()
	var soonest int64
	if before != nil {
		soonest = before.at
	}
	switch e.phase {
	case waiting:
		heap.Remove(&l.waiting, e.place)
	case leased:
		heap.Remove(&l.leased, e.place)
	case dead:
		l.dead--
		s.dead = slices.DeleteFunc(s.dead, func(d *entry) bool { return d == e })
	case fresh, done, dropped:
	}
	s.ranks++
	e.phase, e.at, e.rank = to, at, s.ranks
	switch to {
	case waiting:
		heap.Push(&l.waiting, e)
	case leased:
		heap.Push(&l.leased, e)
	case dead:
		l.dead++
		s.dead = append(s.dead, e)
	case done, dropped:
		if to == done {
			l.done++
		}
		s.known[event{e.job.Provider, e.job.EventID}] = nil
		delete(s.live, e.id)
	case fresh:
	}
	if first := l.first(); s.Woke != nil && first != nil && (before == nil || first.at < soonest) {
		s.Woke(e.job.Lane)
	}
}

// enqueue stores what is not known.
func (s *Store) enqueue(jobs []queue.Job) {
	for i := range jobs {
		name := event{jobs[i].Provider, jobs[i].EventID}
		if _, ok := s.known[name]; ok {
			continue
		}
		s.ids++
		e := &entry{job: jobs[i], id: s.ids}
		s.known[name], s.live[e.id] = e, e
		switch {
		case e.job.DeadOnArrival != "":
			e.reason = e.job.DeadOnArrival
			s.move(e, dead, s.now)
		case e.job.Debounce.Quiet > 0:
			s.arrive(e)
		default:
			s.move(e, waiting, s.now)
		}
	}
}

// lease gives out what is due.
func (s *Store) lease(name string, limit int, length time.Duration) (leases []queue.Lease) {
	l := s.lanes[name]
	if l == nil {
		return nil
	}
	size := 0
	for len(leases) < limit && size < maxAnswer {
		e := l.first()
		if e == nil || e.at > s.now {
			break
		}
		if !s.mayLease(e) {
			continue
		}
		s.token++
		e.token, e.was = s.token, e.at
		e.attempt++
		s.move(e, leased, s.now+max(length.Microseconds(), 1))
		size += Size(&e.job)
		leases = append(leases, queue.Lease{Job: e.job, ID: e.id, Token: e.token, Attempt: e.attempt, Deadline: time.UnixMicro(e.at)})
	}
	return leases
}

// leased is the job of the lease that a command names, although it may have lapsed, or nil.
func (s *Store) leased(c *Command) *entry {
	e := s.live[c.ID]
	if e == nil || e.phase != leased || e.token != c.Token || c.EventID != "" && c.EventID != e.job.EventID {
		return nil
	}
	return e
}

// held is the job of a lease that has not lapsed, or nil.
func (s *Store) held(c *Command) *entry {
	e := s.leased(c)
	if e == nil || e.at <= s.now {
		return nil
	}
	return e
}

// giveBack undoes a lease that nobody got to see.
func (s *Store) giveBack(c *Command) {
	e := s.leased(c)
	if e == nil {
		return
	}
	e.attempt--
	s.move(e, waiting, e.was)
	s.returned(e)
}

// settle ends a lease by a command.
func (s *Store) settle(c *Command) bool {
	e := s.held(c)
	if e == nil {
		return false
	}
	e.reason = c.Name
	switch c.Op {
	case Done:
		s.move(e, done, s.now)
	case Dead:
		s.move(e, dead, s.now)
	default:
		s.move(e, waiting, s.now+c.For.Microseconds())
		s.returned(e)
		return true
	}
	if e.row != nil {
		s.released(e.row, e)
	}
	return true
}

// redrive makes a dead letter due, with its attempts counted from zero.
func (s *Store) redrive(provider, id string) error {
	e := s.known[event{provider, id}]
	if e == nil || e.phase != dead {
		return queue.ErrNotDead
	}
	if w := s.rowOf(e); w != nil {
		if e.job.Version < w.version || w.pending != nil {
			return queue.ErrSuperseded
		}
		w.pending, w.opened, w.due = e, s.now, s.now
	}
	e.attempt = 0
	s.move(e, waiting, s.now)
	return nil
}

// drop makes a dead letter one no more. That its event is known is all that is kept of it.
func (s *Store) drop(provider, id string) error {
	name := event{provider, id}
	e := s.known[name]
	if e == nil || e.phase != dead {
		return queue.ErrNotDead
	}
	s.move(e, dropped, s.now)
	return nil
}
