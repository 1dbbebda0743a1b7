package nats

import (
	"fmt"
	"slices"
)

// sheet is what shall become of some jobs, and of the row that they belong to, if they do. It is filled from what stands in the stream just before a batch is sent, and all that
// it changes is in that batch, under the condition that what it read still stands there: so a crash at any instruction leaves all of it or nothing, and of two who change the same row
// one reads it again.
type sheet struct {
	subjects subjects
	rowHash  string     // "" is no row
	jobs     []string   // whose states are needed, beside those that the row names
	arrivals []*arrival // to be stored, those whose events are not known
	decide   func(*sheet)

	// What was read.
	now   int64
	row   row
	found row
	were  map[string]state
	known map[string]bool

	// What was decided: the states that change, in order, and which of these jobs stand in line again.
	order []ref
	next  map[string]state
	wake  map[string]bool
}

// maxDecided is how many messages a decision about one job makes at most: two states, a letter, a message that says that a job is ready, and the row.
const maxDecided = 5

// entry is the part of a batch that the sheet is. Two of one row, or about one job, are never in the same batch, but for arrivals, which are
// put together.
func (s *sheet) entry() *entry {
	e := &entry{sheet: s, bytes: 1024, most: maxDecided}
	if s.decide == nil {
		e.group, e.most = "r"+s.rowHash, 2+2*len(s.arrivals)
	}
	for _, a := range s.arrivals {
		e.keys = append(e.keys, "q"+a.hash)
		e.bytes += len(a.body) + 512
	}
	if s.rowHash != "" {
		e.keys = append(e.keys, "r"+s.rowHash)
	}
	for _, hash := range s.jobs {
		e.keys = append(e.keys, "s"+hash)
	}
	e.build = s.messages
	e.count = s.count
	return e
}

// join implements sheeted, for sheets of nothing but arrivals. The first of two that bring the same event counts.
func (s *sheet) join(other sheeted) {
	for _, a := range other.(*sheet).arrivals {
		if s.arrival(a.hash) == nil {
			s.arrivals = append(s.arrivals, a)
		}
	}
}

// filters are the subjects to read first.
func (s *sheet) filters() []string {
	out := make([]string, 0, 1+len(s.jobs)+len(s.arrivals))
	if s.rowHash != "" {
		out = append(out, s.subjects.row(s.rowHash))
	}
	for _, hash := range s.jobs {
		out = append(out, s.subjects.state(hash))
	}
	for _, a := range s.arrivals {
		out = append(out, s.subjects.event(a.hash))
	}
	return out
}

// more are the subjects to read when the first are read: the states of the jobs that the row names.
func (s *sheet) more(seen view) (filters []string) {
	if m, ok := seen["r"+s.rowHash]; ok && s.rowHash != "" {
		r, err := decodeRow(m.data, m.seq)
		if err != nil {
			return nil // fill finds it again
		}
		for _, named := range []ref{r.pending, r.running} {
			if _, ok := seen["s"+named.hash]; !ok && !named.none() {
				filters = append(filters, s.subjects.state(named.hash))
			}
		}
	}
	return filters
}

// fill takes what was read.
func (s *sheet) fill(seen view) (err error) {
	s.found = row{}
	s.were, s.known = make(map[string]state), make(map[string]bool)
	for _, a := range s.arrivals {
		_, s.known[a.hash] = seen["q"+a.hash]
	}
	hashes := append(make([]string, 0, len(s.jobs)+2), s.jobs...)
	if m, ok := seen["r"+s.rowHash]; ok && s.rowHash != "" {
		if s.found, err = decodeRow(m.data, m.seq); err != nil {
			return fmt.Errorf("read %s: %w", m.subject, err)
		}
		hashes = append(hashes, s.found.pending.hash, s.found.running.hash)
	}
	for _, hash := range hashes {
		m, ok := seen["s"+hash]
		if !ok {
			continue
		}
		was, err := decodeState(m.data, m.seq)
		if err != nil {
			return fmt.Errorf("read %s: %w", m.subject, err)
		}
		s.were[hash] = was
	}
	return nil
}

// state is a job's state as it is to be; the zero value is that it has none.
func (s *sheet) state(hash string) state {
	if next, ok := s.next[hash]; ok {
		return next
	}
	return s.were[hash]
}

// put sets a job's state.
func (s *sheet) put(job ref, next state) {
	if _, ok := s.next[job.hash]; !ok {
		s.order = append(s.order, job)
	}
	s.next[job.hash] = next
}

// lead makes a job's state the first message, whose sequence the entry gets.
func (s *sheet) lead(job ref) {
	i := slices.Index(s.order, job)
	s.order = slices.Insert(slices.Delete(s.order, i, i+1), 0, job)
}

// messages decides, and makes the messages of what changes. The first is that of the state which was put first, unless another leads.
func (s *sheet) messages(now int64) []message {
	s.now, s.row = now, s.found
	s.order, s.next, s.wake = nil, make(map[string]state), make(map[string]bool)
	if s.decide != nil {
		s.decide(s)
	}
	for _, a := range s.arrivals {
		if !s.known[a.hash] {
			s.arrive(a)
		}
	}
	var out []message
	for _, job := range s.order {
		out = append(out, s.change(job)...)
	}
	if s.rowHash != "" && len(out) > 0 { // written even if it stays as it is: the condition on it is that of everything that was decided by it
		subject := s.subjects.row(s.rowHash)
		out = append(out, message{subject: subject, data: s.row.encode(), guard: &guard{subject, s.found.seq}})
	}
	return out
}

// change is the messages of one job's change.
func (s *sheet) change(job ref) []message {
	was, next := s.were[job.hash], s.next[job.hash]
	if s.wake[job.hash] {
		next.carrier = 0 // the message that follows
	}
	s.next[job.hash] = next
	body := next.encode()
	subject := s.subjects.state(job.hash)
	out := []message{{subject: subject, data: body, guard: &guard{subject, was.seq}}}
	if a := s.arrival(job.hash); a != nil {
		token := noLane
		if next.kind == waiting {
			token = laneToken(job.lane)
		}
		return append(out, message{subject: s.subjects.job(job.hash, token), data: a.body, guard: &guard{s.subjects.event(job.hash), 0}})
	}
	if s.wake[job.hash] {
		out = append(out, message{subject: s.subjects.ready(job.hash, laneToken(job.lane)), data: body})
	}
	switch {
	case next.kind == dead:
		out = append(out, message{subject: s.subjects.dead(job.hash), data: body})
	case was.kind == dead:
		out = append(out, message{subject: s.subjects.dead(job.hash)})
	}
	return out
}

func (s *sheet) arrival(hash string) *arrival {
	for _, a := range s.arrivals {
		if a.hash == hash {
			return a
		}
	}
	return nil
}

// count says what the changes do to the counts.
func (s *sheet) count(t tally) {
	for _, job := range s.order {
		t.account(job.lane, s.now, s.were[job.hash], s.next[job.hash])
		if s.arrival(job.hash) != nil {
			t.change(job.lane, func(l *laneTally) { l.Stored++ })
		}
	}
}

// about is the sheet of something that is done with one job.
func (q *Queue) about(job ref, rowHash string, decide func(*sheet)) *sheet {
	return &sheet{subjects: q.subjects, rowHash: rowHash, jobs: []string{job.hash}, decide: decide}
}
