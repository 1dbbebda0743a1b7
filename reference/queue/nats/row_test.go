package nats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue"
)

// seeds is how many worlds TestRowsAnyInterleaving plays.
const seeds = 30

const (
	testQuiet   = 10 * time.Second
	testLongest = 25 * time.Second
	testLease   = 30 * time.Second
)

// stream is what a server keeps, as far as rows need it: the last message of each subject, batches under conditions, and deliveries that come again until they are acknowledged.
type stream struct {
	t          *testing.T
	subjects   subjects
	seq        uint64
	last       map[string]stored
	deliveries map[uint64]*simulated
	counts     tally
}

// simulated is a message of a lane, which comes when it is time.
type simulated struct {
	subject  string
	at       int64
	repeated bool
}

// look reads what stands under some subjects into a view. A pattern is that of an event, which has three at most.
func (s *stream) look(filters []string, into view) {
	for _, filter := range filters {
		subjects := []string{filter}
		if prefix, pattern := strings.CutSuffix(filter, ">"); pattern {
			subjects = []string{prefix + noLane + ".0", prefix + laneToken("") + ".0", prefix + laneToken("") + ".1"}
		}
		for _, subject := range subjects {
			if m, ok := s.last[subject]; ok {
				class, hash, _ := s.subjects.split(subject)
				into[class+hash] = m
			}
		}
	}
}

// fill lets a sheet read.
func (s *stream) fill(sh *sheet) {
	s.t.Helper()
	seen := make(view)
	s.look(sh.filters(), seen)
	s.look(sh.more(seen), seen)
	if err := sh.fill(seen); err != nil {
		s.t.Fatal(err)
	}
}

// store stores a batch, by the rules of the server, and gives the entry the sequence of its first message. It reports whether the conditions held.
func (s *stream) store(e *entry, messages []message, now int64) bool {
	s.t.Helper()
	written := make(map[string]bool)
	for _, m := range messages {
		if m.guard != nil {
			seen := make(view)
			s.look([]string{m.guard.filter}, seen)
			var is uint64
			for _, found := range seen {
				is = max(is, found.seq)
			}
			if is != m.guard.expect {
				return false
			}
			if written[m.guard.filter] {
				s.t.Fatalf("a batch has a condition on %s after it has written it", m.guard.filter)
			}
		}
		if written[m.subject] {
			s.t.Fatalf("a batch writes %s twice", m.subject)
		}
		written[m.subject] = true
	}
	e.seq = s.seq + 1
	for _, m := range messages {
		s.seq++
		delete(s.deliveries, s.last[m.subject].seq) // it is replaced
		s.last[m.subject] = stored{subject: m.subject, seq: s.seq, data: m.data}
		if strings.HasPrefix(m.subject, s.subjects.prefix+"q.") && !strings.Contains(m.subject, "."+noLane+".") {
			s.deliveries[s.seq] = &simulated{subject: m.subject, at: now}
		}
	}
	e.count(s.counts)
	return true
}

// resource is what the model knows of one.
type resource struct {
	highest int64 // version that was acknowledged
	done    int64 // version that was settled as done last
	// first and last are when the window of what is not leased yet opened and was moved last; zero: nothing waits. Once something was given back the window is not predicted any more.
	first, last int64
	vague       bool
	lease       *queue.Lease
	until       int64
}

// world is a stream, a clock and a model.
type world struct {
	*stream
	random    *rand.Rand
	q         *Queue
	now       int64
	resources map[string]*resource
	events    int
	leases    int
	lost      int // answers that never came
	raced     int
}

// commit stores what a sheet decides. Sometimes somebody else is first, with a change of the same row.
func (w *world) commit(sh *sheet) *entry {
	w.t.Helper()
	e := sh.entry()
	for {
		w.fill(sh)
		if w.random.IntN(8) == 0 {
			w.update()
			w.raced++
		}
		messages := e.build(w.now)
		if len(messages) == 0 {
			e.lost = true
			return e
		}
		row := w.subjects.row(sh.rowHash)
		if !slices.ContainsFunc(messages, func(m message) bool { return m.guard != nil && m.guard.filter == row }) {
			w.t.Fatalf("a decision that depends on a row is stored whatever the row is by then")
		}
		if w.store(e, messages, w.now) {
			return e
		}
	}
}

// update acknowledges a version, most often the next one, sometimes an old one.
func (w *world) update() {
	w.t.Helper()
	var jobs []queue.Job
	for range 1 + w.random.IntN(2) {
		name := fmt.Sprint("r", w.random.IntN(len(w.resources)))
		r := w.resources[name]
		version := r.highest + 1
		if w.random.IntN(4) == 0 {
			version = max(1, r.highest-w.random.Int64N(3))
		}
		w.events++
		jobs = append(jobs, queue.Job{
			Provider: "shopify", EventID: fmt.Sprintf("%s@%d #%d", name, version, w.events), Resource: name, Version: version,
			Debounce: queue.Debounce{Quiet: testQuiet, MaxWait: testLongest},
		})
		if version < r.highest {
			continue
		}
		r.highest, r.last = version, w.now
		if r.first == 0 {
			r.first = w.now
		}
	}
	entries, err := w.q.pack(jobs)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		sh := e.sheet.(*sheet)
		w.fill(sh)
		if messages := e.build(w.now); !w.store(e, messages, w.now) {
			w.t.Fatalf("a row that nobody else changes was refused")
		}
	}
}

func (w *world) pass() {
	w.now += w.random.Int64N(int64(testQuiet) / 1500)
	for _, r := range w.resources {
		if r.lease != nil && w.now > r.until {
			r.lease, r.vague = nil, true
			if r.first == 0 {
				r.first = w.now
			}
		}
	}
}

// work receives what is due, and what becomes due by that, and looks at each lease and at what should have been among them.
func (w *world) work() {
	w.t.Helper()
	claimed := make(map[string]bool)
	for again := true; again; {
		again = false
		var due []uint64
		for seq, d := range w.deliveries {
			if d.at <= w.now {
				due = append(due, seq)
			}
		}
		slices.Sort(due)
		for _, seq := range due {
			if d := w.deliveries[seq]; d != nil {
				again = true
				w.deliver(seq, d, claimed)
			}
		}
	}
	for name, r := range w.resources {
		if r.lease == nil && !claimed[name] && !r.vague && r.first != 0 && (w.now > r.first+testLongest.Microseconds() || w.now > r.last+testQuiet.Microseconds()) {
			w.t.Fatalf("%s was not leased %v after its first update and %v after its last", name, micro(w.now-r.first), micro(w.now-r.last))
		}
	}
}

// deliver does what a Receive does with one delivery.
func (w *world) deliver(seq uint64, d *simulated, claimed map[string]bool) {
	w.t.Helper()
	_, hash, again := w.subjects.split(d.subject)
	c := open(delivery{msg: &client.Msg{Subject: d.subject, Data: w.last[d.subject].data}, hash: hash, again: again, seq: seq, repeated: d.repeated, backlog: w.random.IntN(3) == 0})
	if c.untouched() {
		w.t.Fatalf("%s would be leased without a look", d.subject)
	}
	d.repeated = true
	seen := make(view)
	w.look([]string{w.subjects.state(hash)}, seen)
	m, known := seen["s"+hash]
	s, err := decodeState(m.data, m.seq)
	if err != nil {
		w.t.Fatal(err)
	}
	switch gone, wait := c.stale(s, known, w.now); {
	case gone:
		delete(w.deliveries, seq)
		return
	case wait > 0:
		d.at = w.now + wait
		return
	}
	c.before, c.requeue = s, c.repeated && c.backlog
	if again {
		w.look([]string{w.subjects.job(hash, laneToken(""))}, seen)
		c.job, c.damaged = decodeJob(seen["q"+hash].data)
	} else {
		c.unpack()
	}
	c.entry = w.commit(w.q.leaseEntry(c).sheet.(*sheet))
	if w.random.IntN(20) == 0 { // the process dies before it answers the delivery
		w.lost++
		d.at = w.now + ackWait.Microseconds()
		if c.leased() {
			r := w.resources[c.job.Resource]
			r.lease, r.first, r.vague = nil, w.now, true
			claimed[c.job.Resource] = true
		}
		return
	}
	switch {
	case c.leased():
		d.at = c.after.at
		w.leased(c, claimed)
	case c.wait > 0:
		d.at = w.now + c.wait
	case !c.entry.lost:
		delete(w.deliveries, seq)
	}
}

// leased compares a lease with the model.
func (w *world) leased(c *candidate, claimed map[string]bool) {
	w.t.Helper()
	w.leases++
	r := w.resources[c.job.Resource]
	claimed[c.job.Resource] = true
	switch {
	case r.lease != nil:
		w.t.Fatalf("%s was leased while %s was", c.job.EventID, r.lease.EventID)
	case c.job.Version < r.done:
		w.t.Fatalf("%s was leased after version %d was done", c.job.EventID, r.done)
	case !r.vague && c.job.Version != r.highest:
		w.t.Fatalf("%s was leased, the newest version is %d", c.job.EventID, r.highest)
	case !r.vague && w.now < r.last+testQuiet.Microseconds() && w.now < r.first+testLongest.Microseconds():
		w.t.Fatalf("%s was leased %v after the last update and %v after the first", c.job.EventID, micro(w.now-r.last), micro(w.now-r.first))
	}
	r.lease, r.until = &queue.Lease{Job: c.job, Token: int64(c.entry.seq)}, c.after.at
	r.first, r.vague = 0, false
}

// settle ends a lease in some way.
func (w *world) settle(outcome queue.Outcome) {
	w.t.Helper()
	for i := range len(w.resources) {
		name := fmt.Sprint("r", (i+w.events)%len(w.resources))
		r := w.resources[name]
		if r.lease == nil {
			continue
		}
		hash := hashOf(r.lease.Provider, r.lease.EventID)
		end := ending{ref: ref{hash: hash}, ready: w.subjects.ready(hash, laneToken("")), token: uint64(r.lease.Token), outcome: outcome}
		e := w.commit(w.q.settleEntry(&end, state{row: rowOf(&r.lease.Job)}).sheet.(*sheet))
		if e.lost {
			w.t.Fatalf("settle %s: the lease was lost", name)
		}
		if w.random.IntN(20) != 0 { // or the process dies before it answers the delivery
			w.answer(hash, end.next)
		}
		switch {
		case outcome.IsDone():
			r.done = r.lease.Version
		case outcome.IsRetry():
			r.vague = true
			if r.first == 0 {
				r.first = w.now
			}
		}
		r.lease = nil
		return
	}
}

// answer does what Settle does with the delivery that brought the job.
func (w *world) answer(hash string, next state) {
	for seq, d := range w.deliveries {
		if _, h, _ := w.subjects.split(d.subject); h != hash || !d.repeated {
			continue
		}
		if next.kind == waiting && next.carrier == seq {
			d.at = next.at
			continue
		}
		delete(w.deliveries, seq)
	}
}

// TestRowsAnyInterleaving plays updates, leases, settlements, lapses, lost answers, batches that others overtake, and the clock against each other at random. In the end the last version
// of each resource is done, every window ended neither too early nor too late, and no job is lost or counted twice.
func TestRowsAnyInterleaving(t *testing.T) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := newSubjects("ns")
			w := &world{
				stream: &stream{t: t, subjects: s, last: make(map[string]stored), deliveries: make(map[uint64]*simulated), counts: make(tally)},
				random: rand.New(rand.NewPCG(seed, 11)), q: &Queue{subjects: s, opts: Options{MaxPayload: 1000, Lease: testLease}},
				now: time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC).UnixMicro(), resources: make(map[string]*resource),
			}
			for i := range 5 {
				w.resources[fmt.Sprint("r", i)] = &resource{}
			}
			for range 1500 {
				switch n := w.random.IntN(100); {
				case n < 30:
					w.update()
				case n < 60:
					w.pass()
				case n < 80:
					w.work()
				case n < 92:
					w.settle(queue.Done())
				default:
					w.settle(queue.Retry(time.Duration(w.random.IntN(20))*time.Second, "busy"))
				}
			}
			w.finish()
		})
	}
}

// finish lets everything come to its end.
func (w *world) finish() {
	w.t.Helper()
	for range 20 {
		w.now += testLease.Microseconds()
		w.pass()
		w.work()
		for range w.resources {
			w.settle(queue.Done())
		}
	}
	for name, r := range w.resources {
		if r.done != r.highest {
			w.t.Errorf("%s: version %d was done last, the newest is %d", name, r.done, r.highest)
		}
	}
	d := w.counts.depth(w.now)
	if d.Waiting+d.Leased+d.Dead != 0 || d.Done != int64(w.events) || len(d.Lanes) != 1 {
		w.t.Errorf("depth %+v, want %d done and nothing else", d, w.events)
	}
	if w.leases < 50 || w.lost == 0 || w.raced == 0 {
		w.t.Errorf("only %d leases, %d lost answers and %d races: the test shows little", w.leases, w.lost, w.raced)
	}
}
