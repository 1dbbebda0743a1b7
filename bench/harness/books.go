package harness

import (
	"slices"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"floodproof/reports/ledger"
)

// books is where generator and sink write down what happened: into the ledger, and into the few bytes an event that the running harness needs to know
// what is still outstanding. The verdict never comes from here; it is judged from the file.
type books struct {
	ledger *ledger.Writer
	// allSteps has a bit for each step that an event's effect has.
	allSteps uint8

	mu    sync.Mutex
	kinds *kinds
	// recorded counts the deliveries in the ledger, which are those of the generator and those of floods.
	recorded   uint32
	index      *index
	events     []eventState
	deliveries []deliveryState
	// updates are the events of which only the latest version of a resource matters, versions the resources of those.
	updates  map[uint32]updateOf
	versions map[uint32]*versions
	tally    Tally
	acks     *hdrhistogram.Histogram
	lastAck  time.Duration
	err      error
}

// eventState is what the harness remembers of an event: a bit per step taken, flags, and the number of its kind.
type eventState struct {
	steps uint8
	flags stateFlags
	kind  uint16
}

type stateFlags uint8

const (
	stateAcked stateFlags = 1 << iota
	stateBorn
	statePoison
	statePhantom
	stateDead
	// stateSuperseded: a newer version of its resource was done, and only the latest matters.
	stateSuperseded
)

type updateOf struct{ resource, version uint32 }

// versions is what is known of a resource of which only the latest version matters.
type versions struct {
	done    bool
	newest  uint32   // the highest version that was done
	waiting []uint32 // acked events that are not done
}

type deliveryState struct {
	first uint32
	// number is the delivery's in the ledger.
	number uint32
	count  uint16
	class  ledger.Class
}

// Tally counts what the harness has seen so far, for the live view.
type Tally struct {
	// Born are events with a genuine delivery; Acked, Applied and Dead are events.
	Born, Acked, Applied, Dead int64
	// Pending are acked events that are neither applied nor dead, without the poisoned ones; PoisonPending are those.
	Pending, PoisonPending int64
	// Attempts, Refused and Unanswered count attempts of every class.
	Attempts, Refused, Unanswered int64
	// AckP99 is over all genuine attempts that succeeded, from their due time.
	AckP99 time.Duration
}

func newBooks(w *ledger.Writer, expected int, steps uint8) *books {
	return &books{
		kinds:    newKinds(nil),
		ledger:   w,
		allSteps: steps,
		index:    newIndex(expected + expected/16),
		events:   make([]eventState, 0, expected+expected/64+64),
		updates:  make(map[uint32]updateOf),
		versions: make(map[uint32]*versions),
		acks:     hdrhistogram.New(1, int64(time.Hour/time.Microsecond), 2),
	}
}

// EventType implements loadgen.TypedBooks.
func (b *books) EventType(number uint32, provider, eventType string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.event(number).kind = b.kinds.number(kind{provider, eventType})
}

// fits reports whether an event is of those that a fault's pattern means, for the sink.
func (b *books) fits(number uint32, events string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(number) < len(b.events) && b.kinds.fits(b.events[number].kind, events)
}

// Event introduces an event or a phantom id.
func (b *books) Event(e ledger.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.index.add(e.ID, e.Number); err != nil && b.err == nil {
		b.err = err
	}
	s := b.event(e.Number)
	if e.Flags&ledger.Poison != 0 {
		s.flags |= statePoison
	}
	if e.Flags&ledger.Phantom != 0 {
		s.flags |= statePhantom
	}
	if e.Flags&ledger.Latest != 0 {
		b.updates[e.Number] = updateOf{e.Resource, e.Version}
		if b.versions[e.Resource] == nil {
			b.versions[e.Resource] = &versions{}
		}
	}
	e.Lane = b.kinds.lane(b.events[e.Number].kind)
	b.ledger.Event(e)
}

// event returns the state of an event; the list grows to it.
func (b *books) event(n uint32) *eventState {
	for uint32(len(b.events)) <= n {
		b.events = append(b.events, eventState{})
	}
	return &b.events[n]
}

// Delivery introduces a delivery.
func (b *books) Delivery(d ledger.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uint32(len(b.deliveries)) <= d.Number {
		b.deliveries = append(b.deliveries, deliveryState{})
	}
	b.deliveries[d.Number] = deliveryState{first: d.First, number: b.recorded, count: d.Count, class: d.Class}
	if d.Class == ledger.Genuine {
		for i := range uint32(d.Count) {
			if s := b.event(d.First + i); s.flags&stateBorn == 0 {
				s.flags |= stateBorn
				b.tally.Born++
			}
		}
	}
	d.Number = b.recorded
	b.recorded++
	b.ledger.Delivery(d)
}

// Forgery records a delivery of a flood, which carries no event, and its only attempt.
func (b *books) Forgery(provider uint8, a ledger.Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Delivery(ledger.Delivery{Number: b.recorded, Class: ledger.Forged, Provider: provider, First: ledger.None})
	a.Delivery, a.Try, a.Then = b.recorded, 1, ledger.Exhausted
	if a.Result == ledger.OK {
		a.Then = ledger.Settled
	}
	b.recorded++
	b.count(a)
}

// Attempt records an attempt that has ended.
func (b *books) Attempt(a ledger.Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	number := a.Delivery
	a.Delivery = b.deliveries[number].number
	b.count(a)
	if a.Result == ledger.OK {
		a.Delivery = number
		b.acked(a)
	}
}

// count writes an attempt down under its number in the ledger; b.mu is held.
func (b *books) count(a ledger.Attempt) {
	b.ledger.Attempt(a)
	b.tally.Attempts++
	switch a.Result {
	case ledger.Refused:
		b.tally.Refused++
	case ledger.Unanswered:
		b.tally.Unanswered++
	case ledger.OK, ledger.Unconnected:
	}
}

func (b *books) acked(a ledger.Attempt) {
	d := b.deliveries[a.Delivery]
	switch d.class {
	case ledger.Genuine:
		_ = b.acks.RecordValue(min(int64((a.Done-a.Due)/time.Microsecond), b.acks.HighestTrackableValue())) // for the eye only
	case ledger.DuplicateSameID, ledger.DuplicateNewID:
	case ledger.Forged, ledger.Malformed:
		return
	}
	b.lastAck = max(b.lastAck, a.Done)
	for i := range uint32(d.count) {
		s := b.event(d.first + i)
		if s.flags&stateAcked != 0 {
			continue
		}
		s.flags |= stateAcked
		b.tally.Acked++
		b.outstanding(s, +1)
		b.awaitUpdate(d.first + i)
	}
}

// outstanding adds n to the backlog that s belongs to, unless s is accounted for.
func (b *books) outstanding(s *eventState, n int64) {
	switch {
	case b.applied(s) || s.flags&(stateDead|stateSuperseded) != 0:
	case s.flags&statePoison != 0:
		b.tally.PoisonPending += n
	default:
		b.tally.Pending += n
	}
}

func (b *books) applied(s *eventState) bool { return s.steps&b.allSteps == b.allSteps }

// Call records a call that reached the sink.
func (b *books) Call(c ledger.Call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.Call(c)
	if c.Outcome != ledger.Took || c.Event == ledger.None {
		return
	}
	s := b.event(c.Event)
	if b.applied(s) {
		return
	}
	if s.flags&stateAcked != 0 {
		b.outstanding(s, -1)
	}
	s.steps |= 1 << c.Step
	if s.flags&stateAcked != 0 {
		b.outstanding(s, +1)
	}
	if !b.applied(s) {
		return
	}
	if s.flags&stateBorn != 0 {
		b.tally.Applied++
	}
	b.updateDone(c.Event)
}

// awaitUpdate notes an acked event that a newer version may answer for, or has answered for.
func (b *books) awaitUpdate(n uint32) {
	u, ok := b.updates[n]
	if !ok {
		return
	}
	v := b.versions[u.resource]
	if v.done && v.newest >= u.version {
		b.supersede(n)
		return
	}
	v.waiting = append(v.waiting, n)
}

// updateDone accounts for the older versions of a resource.
func (b *books) updateDone(n uint32) {
	u, ok := b.updates[n]
	if !ok {
		return
	}
	v := b.versions[u.resource]
	v.done, v.newest = true, max(v.newest, u.version)
	v.waiting = slices.DeleteFunc(v.waiting, func(n uint32) bool {
		if b.updates[n].version > v.newest {
			return false
		}
		b.supersede(n)
		return true
	})
}

// supersede takes an acked event out of the backlog, unless it is accounted for.
func (b *books) supersede(n uint32) {
	s := b.event(n)
	if b.applied(s) || s.flags&stateSuperseded != 0 {
		return
	}
	b.outstanding(s, -1)
	s.flags |= stateSuperseded
}

// dead notes that an event was found in the target's dead-letter list, with the right hash.
func (b *books) dead(number uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.event(number)
	if s.flags&stateDead != 0 {
		return
	}
	if s.flags&stateAcked != 0 {
		b.outstanding(s, -1)
	}
	s.flags |= stateDead
	b.tally.Dead++
}

// lookup finds an event by its canonical id, for the sink.
func (b *books) lookup(id string) (uint32, ledger.EventFlags, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.index.find(id)
	if !ok || int(n) >= len(b.events) {
		return ledger.None, 0, false
	}
	var flags ledger.EventFlags
	if b.events[n].flags&statePoison != 0 {
		flags |= ledger.Poison
	}
	if b.events[n].flags&statePhantom != 0 {
		flags |= ledger.Phantom
	}
	return n, flags, true
}

// Tally is the state of the accounts now.
func (b *books) Tally() Tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tally
	t.AckP99 = time.Duration(b.acks.ValueAtQuantile(99)) * time.Microsecond
	return t
}

// Err is the first thing that makes the accounts useless.
func (b *books) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}
