package queuetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
)

const (
	// outages is how often Outages kills the server, and enough how many more events must be stored, and settled, before each kill and after the last.
	outages, enough = 3, 40
	// outageLease is the lease of those who work through the outages.
	outageLease = 2 * time.Second
	// callWithin is how long they wait for an Enqueue: less than an outage takes.
	callWithin = 100 * time.Millisecond
)

// Outage is a queue with a server that the test may kill.
type Outage struct {
	// Open opens a handle on the queue, which is empty, and closes it with the test.
	Open func(t *testing.T, lease time.Duration) queue.Queue
	// Kill ends the server with SIGKILL, Restart starts it on the same data and returns when it answers.
	Kill, Restart func(context.Context) error
	// Times is how often it is killed; 0 is three times. CallWithin bounds an Enqueue while the server may be away, and must be less than that takes; 0 is 100 ms.
	Times      int
	CallWithin time.Duration
}

// Outages kills the server under load, again and again. What was acknowledged is there, once; what was settled does not come again; tokens grow; what was leased comes again when its
// lease ends; and the handles heal by themselves. The queue must be a queue.Depther.
func Outages(t *testing.T, o Outage) {
	t.Helper()
	open := func(lease time.Duration) queue.Queue { return o.Open(t, lease) }
	s := &suite{TB: t, ctx: t.Context(), patience: time.Minute}
	s.outages(o, open)
}

// outages is the check. It asks of o everything but to open the queue.
func (s *suite) outages(o Outage, open func(lease time.Duration) queue.Queue) {
	s.Helper()
	q := open(outageLease)
	b := newBooks()
	for _, id := range []string{"settled", "out-0", "out-1"} {
		s.enqueue(q, job(id))
	}
	out := s.receive(q, 3)
	for _, lease := range out {
		b.take(lease)
	}
	s.settle(q, out[0], queue.Done())
	b.settle(out[0].EventID, nil)

	s.workThroughOutages(o, q, b)
	for _, lease := range out[1:] {
		s.pass(lease.Deadline.Add(50 * time.Millisecond))
		if err := s.trySettle(q, lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			s.Errorf("Settle of a lease that lapsed in the outage: got error %v, want %v", err, queue.ErrLeaseLost)
		}
		b.stored[lease.EventID] = true
	}
	late := open(time.Minute)
	s.drain(late, b)
	for id := range b.stored {
		if b.came[id] == 0 {
			s.Errorf("%s was acknowledged and never came", id)
		}
	}
	for id := range b.stored { // all known, also to a server that was killed: what comes now is wrong
		s.enqueue(late, job(id))
	}
	s.drain(late, b)
	for _, w := range b.wrong {
		s.Error(w)
	}
	one, err := late.(queue.Depther).Depth(s.ctx)
	two, err2 := q.(queue.Depther).Depth(s.ctx) // which has gone through all outages
	if err := errors.Join(err, err2); err != nil || one.Waiting+one.Leased+one.Dead != 0 || one.Done != two.Done || one.Done != int64(len(b.came)) {
		s.Errorf("depth: got %+v and %+v, error %v; want %d done and nothing else", one, two, err, len(b.came))
	}
	s.Logf("%d events acknowledged through %d kills, %d settled meanwhile, %d leased more than once", len(b.stored), cmp.Or(o.Times, outages), b.meanwhile, b.again)
}

// books are what callers of a queue were told.
type books struct {
	mu sync.Mutex
	// stored events were acknowledged, came ones were leased so often, settled ones were settled with success.
	stored, settled map[string]bool
	came            map[string]int
	tokens          map[string]int64
	wrong           []string
	// again is how many leases were not the first of their event, meanwhile how many events were settled before the drain.
	again, meanwhile int
	grew             chan struct{} // a place for one signal
}

func newBooks() *books {
	return &books{stored: make(map[string]bool), settled: make(map[string]bool), came: make(map[string]int), tokens: make(map[string]int64), grew: make(chan struct{}, 1)}
}

func (b *books) note(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
	select {
	case b.grew <- struct{}{}:
	default:
	}
}

// take writes down a lease, and what is wrong with it.
func (b *books) take(lease queue.Lease) {
	b.note(func() {
		id := lease.EventID
		if b.settled[id] {
			b.wrong = append(b.wrong, id+" was settled and came again")
		}
		if b.came[id] > 0 && lease.Token <= b.tokens[id] {
			b.wrong = append(b.wrong, fmt.Sprintf("%s came with token %d after %d", id, lease.Token, b.tokens[id]))
		}
		if b.came[id]++; b.came[id] > 1 {
			b.again++
		}
		b.tokens[id] = lease.Token
	})
}

func (b *books) settle(id string, err error) {
	if err == nil {
		b.note(func() { b.settled[id] = true })
	}
}

// await waits until so many more events are stored and settled.
func (s *suite) awaitProgress(b *books, more int) {
	s.Helper()
	count := func() (int, int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.stored), len(b.settled)
	}
	stored, settled := count()
	timer := time.NewTimer(s.patience)
	defer timer.Stop()
	for {
		nowStored, nowSettled := count()
		if nowStored >= stored+more && nowSettled >= settled+more {
			return
		}
		select {
		case <-b.grew:
		case <-timer.C:
			s.Fatalf("nothing moves any more: %d events are stored and %d settled, %d and %d more than before", nowStored, nowSettled, nowStored-stored, nowSettled-settled)
		}
	}
}

// workThroughOutages enqueues from four goroutines, each of which repeats what failed as a provider does, receives and settles in another, and kills the server meanwhile.
func (s *suite) workThroughOutages(o Outage, q queue.Queue, b *books) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	var failed atomic.Int64
	for g := range 4 {
		all.Go(func() {
			b.send(ctx, q, sender{name: fmt.Sprint("load-", g), within: cmp.Or(o.CallWithin, callWithin), failed: &failed})
		})
	}
	all.Go(func() { b.work(ctx, q) })
	for range cmp.Or(o.Times, outages) {
		s.awaitProgress(b, enough)
		before := failed.Load()
		if err := o.Kill(s.ctx); err != nil {
			s.Fatalf("kill the server: %v", err)
		}
		for failed.Load() == before { // each call ends with its context
			s.pass(time.Now().Add(5 * time.Millisecond))
		}
		if err := o.Restart(s.ctx); err != nil {
			s.Fatalf("start the server again: %v", err)
		}
	}
	s.awaitProgress(b, enough)
	b.mu.Lock()
	b.meanwhile = len(b.settled)
	b.mu.Unlock()
}

// sender is one who enqueues.
type sender struct {
	name   string
	within time.Duration
	failed *atomic.Int64
}

// send enqueues events until ctx ends, each until it is acknowledged.
func (b *books) send(ctx context.Context, q queue.Queue, s sender) {
	for i := 0; ctx.Err() == nil; {
		id := fmt.Sprintf("%s-%05d", s.name, i)
		one, stop := context.WithTimeout(ctx, s.within)
		err := q.Enqueue(one, job(id))
		stop()
		if err != nil {
			s.failed.Add(1)
			breathe(ctx)
			continue
		}
		i++
		b.note(func() { b.stored[id] = true })
	}
}

// work receives and settles until ctx ends.
func (b *books) work(ctx context.Context, q queue.Queue) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 8)
		if err != nil {
			breathe(ctx)
			continue
		}
		for _, lease := range leases {
			b.take(lease)
			b.settle(lease.EventID, q.Settle(ctx, lease, queue.Done()))
		}
	}
}

// breathe waits a moment before a call is repeated.
func breathe(ctx context.Context) {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// drain receives and settles until nothing is left. It may find nothing at first: what is leased lapses, and a message that waits may be one that came again, and is known.
func (s *suite) drain(q queue.Queue, b *books) {
	s.Helper()
	for give := time.Now().Add(s.patience); ; {
		d, err := q.(queue.Depther).Depth(s.ctx)
		if err != nil {
			s.Fatalf("Depth: %v", err)
		}
		if d.Waiting+d.Leased == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		leases, err := q.Receive(ctx, "", 100)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			s.Fatalf("Receive: %v", err)
		}
		if len(leases) == 0 && time.Now().After(give) {
			s.Fatalf("nothing comes any more, and the depth is %+v", d)
		}
		var all sync.WaitGroup
		for _, lease := range leases {
			b.take(lease)
			all.Go(func() {
				err := q.Settle(s.ctx, lease, queue.Done())
				if b.settle(lease.EventID, err); err != nil {
					s.Errorf("Settle of %s: %v", lease.EventID, err)
				}
			})
		}
		all.Wait()
	}
}
