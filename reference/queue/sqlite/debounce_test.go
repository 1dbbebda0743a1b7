package sqlite

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
)

const (
	testQuiet   = 10 * time.Second
	testLongest = 25 * time.Second
	testLease   = 30 * time.Second
)

// resource is what the model knows of one.
type resource struct {
	highest int64 // version that was acknowledged
	done    int64 // version that was settled as done last
	// first and last are when the window of what is not leased yet opened and was moved last; zero: nothing waits. Once something was given back the window
	// is not predicted any more.
	first, last time.Time
	vague       bool
	lease       *queue.Lease
	until       time.Time
}

// world is a queue, a clock and a model.
type world struct {
	t         *testing.T
	random    *rand.Rand
	dir       string
	now       *atomic.Int64
	q         *Queue
	resources map[string]*resource
	events    int
	leases    int
	crashes   int
}

func (w *world) clock() time.Time { return time.UnixMicro(w.now.Load()) }

func (w *world) open() {
	w.t.Helper()
	q, err := Open(w.t.Context(), w.dir, Options{Lease: testLease, Synchronous: SynchronousNormal, Now: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	w.q = q
}

// update acknowledges a version, most often the next one, sometimes an old one, sometimes several at once.
func (w *world) update() {
	name := fmt.Sprint("r", w.random.IntN(len(w.resources)))
	r := w.resources[name]
	version := r.highest + 1
	if w.random.IntN(4) == 0 {
		version = max(1, r.highest-w.random.Int64N(3))
	}
	w.events++
	j := queue.Job{
		Provider: "shopify", EventID: fmt.Sprintf("%s@%d #%d", name, version, w.events), Resource: name, Version: version,
		Debounce: queue.Debounce{Quiet: testQuiet, MaxWait: testLongest},
	}
	if err := w.q.Enqueue(w.t.Context(), j); err != nil {
		w.t.Fatal(err)
	}
	if version < r.highest {
		return
	}
	r.highest, r.last = version, w.clock()
	if r.first.IsZero() {
		r.first = r.last
	}
}

func (w *world) pass() {
	w.now.Add(w.random.Int64N(int64(testQuiet) / 1500))
	for _, r := range w.resources {
		if r.lease != nil && !w.clock().Before(r.until) {
			r.lease, r.vague = nil, true
			if r.first.IsZero() {
				r.first = w.clock()
			}
		}
	}
}

// work claims what is due and looks at each lease and at what should have been among them.
func (w *world) work() {
	if err := w.q.catchUp(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	now := w.clock()
	leases, err := w.q.claim(w.t.Context(), "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	claimed := make(map[string]bool)
	for _, lease := range leases {
		w.leases++
		r := w.resources[lease.Resource]
		claimed[lease.Resource] = true
		switch {
		case r.lease != nil:
			w.t.Fatalf("%s was leased while %s was", lease.EventID, r.lease.EventID)
		case lease.Version < r.done:
			w.t.Fatalf("%s was leased after version %d was done", lease.EventID, r.done)
		case !r.vague && lease.Version != r.highest:
			w.t.Fatalf("%s was leased, the newest version is %d", lease.EventID, r.highest)
		case !r.vague && now.Before(r.last.Add(testQuiet)) && now.Before(r.first.Add(testLongest)):
			w.t.Fatalf("%s was leased %v after the last update and %v after the first", lease.EventID, now.Sub(r.last), now.Sub(r.first))
		}
		r.lease, r.until = &lease, lease.Deadline
		r.first, r.vague = time.Time{}, false
	}
	for name, r := range w.resources {
		if r.lease == nil && !claimed[name] && !r.vague && !r.first.IsZero() && (!now.Before(r.first.Add(testLongest)) || !now.Before(r.last.Add(testQuiet))) {
			w.t.Fatalf("%s was not leased %v after its first update and %v after its last", name, now.Sub(r.first), now.Sub(r.last))
		}
	}
}

// settle ends a lease in some way.
func (w *world) settle(outcome queue.Outcome) {
	for name, r := range w.resources { // in any order
		if r.lease == nil {
			continue
		}
		if err := w.q.Settle(w.t.Context(), *r.lease, outcome); err != nil {
			w.t.Fatalf("settle %s: %v", name, err)
		}
		switch {
		case outcome.IsDone():
			r.done = r.lease.Version
		case outcome.IsRetry():
			r.vague = true
			if r.first.IsZero() {
				r.first = w.clock()
			}
		}
		r.lease = nil
		return
	}
}

// crash ends the process of the queue and starts it again, sometimes politely.
func (w *world) crash() {
	w.crashes++
	if w.random.IntN(2) == 0 {
		w.q.vanish(w.t)
	} else if err := w.q.Close(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.open()
}

// TestDebounceAnyInterleaving plays updates, leases, settlements, lapses, crashes and the clock against each other at random. In the end the last version of each
// resource is done, and every window ended neither too early nor too late.
func TestDebounceAnyInterleaving(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := &world{t: t, random: rand.New(rand.NewPCG(seed, 11)), dir: t.TempDir(), now: new(atomic.Int64), resources: make(map[string]*resource)}
			w.now.Store(time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC).UnixMicro())
			for i := range 5 {
				w.resources[fmt.Sprint("r", i)] = &resource{}
			}
			w.open()
			for range 1500 {
				switch n := w.random.IntN(100); {
				case n < 35:
					w.update()
				case n < 60:
					w.pass()
				case n < 80:
					w.work()
				case n < 92:
					w.settle(queue.Done())
				case n < 98:
					w.settle(queue.Retry(time.Duration(w.random.IntN(20))*time.Second, "busy"))
				default:
					w.crash()
				}
			}
			w.finish()
		})
	}
}

// finish lets everything come to its end.
func (w *world) finish() {
	for range 20 {
		w.now.Add(testLease.Microseconds())
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
	d, err := w.q.Depth(w.t.Context())
	if err != nil || d.Waiting+d.Leased+d.Dead != 0 || d.Done != int64(w.events) {
		w.t.Errorf("depth %+v (%v), want %d done and nothing else", d, err, w.events)
	}
	if w.leases < 50 || w.crashes < 5 {
		w.t.Errorf("only %d leases and %d crashes: the test shows little", w.leases, w.crashes)
	}
	if err := w.q.Close(w.t.Context()); err != nil {
		w.t.Error(err)
	}
}
