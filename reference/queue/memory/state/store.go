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
	// Keep says that what is finished is kept with all that is known of it, and not by its identity alone. It is set before the first command, or by the first Retain.
	Keep bool

	now   int64
	known map[event]*entry // what is finished and not kept is a mark of its lane
	most  int              // how many were known when known was made, or at a Retain since
	live  map[int64]*entry // what is not finished, by number
	order listing          // what is not finished or is kept
	ends  []ending         // of what is finished, the oldest first
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

// entry is what there is of one event: its work, or what is packed of that once it is finished, or neither if it is a mark.
type entry struct {
	*work
	packed []byte
	id     int64
	lane   *lane
	phase  phase
	at     int64 // due, lapsing, dead or finished, by phase
}

// work is a job that is not finished.
type work struct {
	job      queue.Job
	stored   int64 // where its command stands in a log, 0 if in none
	token    int64
	attempt  int   // leases since it was begun anew
	leases   int   // all of them
	since    int64 // when it was leased
	was      int64 // at, before it was leased
	rank     int64 // orders what has the same at
	place    int   // in its line
	reason   string
	steps    []string
	attempts []queue.Attempt
	acts     []queue.Act
	row      *row // of a debounced job
}

// lane is one line of jobs.
type lane struct {
	name                string
	waiting, leased     line
	dead, done, expired int64
	// marks stand for all that was done, and dropped, of which nothing but the identity is kept.
	marks [2]entry
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
		l = &lane{name: name}
		l.marks = [2]entry{{lane: l, phase: done}, {lane: l, phase: dropped}}
		s.lanes[name] = l
	}
	return l
}

// move takes a job from where it is to where it shall be.
func (s *Store) move(e *entry, to phase, at int64) {
	l := e.lane
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
	case done:
		l.done--
	case fresh, dropped:
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
		s.finish(e)
	case fresh:
	}
	if first := l.first(); s.Woke != nil && first != nil && (before == nil || first.at < soonest) {
		s.Woke(l.name)
	}
}

// enqueue stores what is not known.
func (s *Store) enqueue(c *Command) {
	for i := range c.Jobs {
		j := &c.Jobs[i]
		name := event{j.Provider, j.EventID}
		if _, ok := s.known[name]; ok {
			continue
		}
		s.ids++
		e := &entry{work: &work{job: *j, stored: c.Place}, id: s.ids, lane: s.lane(j.Lane)}
		s.known[name], s.live[e.id] = e, e
		s.order.add(e)
		switch {
		case e.job.DeadOnArrival != "":
			e.reason = e.job.DeadOnArrival
			e.note(s.now, e.reason)
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
		if e.phase == leased {
			e.note(e.at, lapsed)
		}
		if !s.mayLease(e) {
			continue
		}
		s.token++
		e.token, e.was, e.since = s.token, e.at, s.now
		e.attempt++
		e.leases++
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
	e.leases--
	s.move(e, waiting, e.was)
	s.returned(e)
}

// settle ends a lease by a command.
func (s *Store) settle(c *Command) bool {
	e := s.held(c)
	if e == nil {
		return false
	}
	w := e.row
	e.reason = c.Name
	if c.Op != Done {
		e.note(s.now, c.Name)
	}
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
	if w != nil {
		s.released(w, e)
	}
	return true
}
