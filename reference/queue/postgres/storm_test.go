package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
)

const (
	stormResources = 24
	stormQuiet     = 20 * time.Millisecond
	stormLongest   = 80 * time.Millisecond
	stormLease     = 150 * time.Millisecond
)

// storm is what is known of many resources that are updated and worked on by many at once.
type storm struct {
	mu        sync.Mutex
	resources map[string]*weather
	wrong     []string
	leases    int
	lapsed    int
	events    int
}

// weather is what is known of one resource.
type weather struct {
	acked   int64        // highest version that was acknowledged
	settled int64        // highest version that was settled, with success
	asked   int64        // highest version for which that was asked
	lease   *queue.Lease // that somebody works under
}

func newStorm() *storm {
	s := &storm{resources: make(map[string]*weather)}
	for i := range stormResources {
		s.resources[fmt.Sprint("resource-", i)] = &weather{}
	}
	return s
}

// stormUpdate is one version of a resource. Two lanes share the resources.
func stormUpdate(resource string, version int64, n int, edge queue.Edge) queue.Job {
	j := job(fmt.Sprintf("%s@%d #%d", resource, version, n))
	j.Resource, j.Version = resource, version
	j.Debounce = queue.Debounce{Quiet: stormQuiet, MaxWait: stormLongest, Edge: edge}
	if n%3 == 0 {
		j.Lane = "slow"
	}
	return j
}

// update enqueues versions of the resources of one sender until ctx ends, now and then an old one, each until it is acknowledged.
func (s *storm) update(ctx context.Context, q queue.Queue, sender, senders int) {
	random := rand.New(rand.NewPCG(uint64(sender), 12))
	versions := make(map[int]int64)
	for n := sender; ; n += senders {
		i := random.IntN(stormResources/senders)*senders + sender
		version := versions[i] + 1
		if random.IntN(4) == 0 {
			version = max(1, version-random.Int64N(4))
		}
		versions[i] = max(versions[i], version)
		name := fmt.Sprint("resource-", i)
		edge := queue.Trailing
		if i%4 == 0 {
			edge = queue.Both
		}
		j := stormUpdate(name, version, n, edge)
		for q.Enqueue(context.WithoutCancel(ctx), j) != nil {
			again(context.WithoutCancel(ctx))
		}
		s.mu.Lock()
		s.events++
		s.resources[name].acked = max(s.resources[name].acked, version)
		s.mu.Unlock()
		if !again(ctx) {
			return
		}
	}
}

// take looks at a lease that was given.
func (s *storm) take(lease *queue.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases++
	r := s.resources[lease.Resource]
	if !time.Now().Before(lease.Deadline) {
		return // the answer was so long on its way that the lease has lapsed by now, and others may have gone on
	}
	if r.lease != nil && time.Now().Before(r.lease.Deadline) {
		s.wrong = append(s.wrong, fmt.Sprintf("%s was leased while %s was, for another %v", lease.EventID, r.lease.EventID, time.Until(r.lease.Deadline)))
	}
	if lease.Version < r.settled {
		s.wrong = append(s.wrong, fmt.Sprintf("%s was leased after version %d was settled", lease.EventID, r.settled))
	}
	r.lease = lease
}

// work receives from a lane until ctx ends, and does one of several things with each lease.
func (s *storm) work(ctx context.Context, q queue.Queue, lane string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 13))
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, lane, 1+random.IntN(4))
		if err != nil && !again(ctx) {
			return
		}
		for i := range leases {
			s.take(&leases[i])
		}
		for i := range leases {
			switch n := random.IntN(10); {
			case n < 6:
				s.settle(q, &leases[i], queue.Done())
			case n < 8:
				s.settle(q, &leases[i], queue.Retry(time.Duration(random.IntN(40))*time.Millisecond, "busy"))
			case n < 9:
				s.mu.Lock() // and nobody settles it
				s.lapsed++
				s.mu.Unlock()
			default:
				first, second := again(ctx), again(ctx) // while it is worked on
				if first && second {
					s.settle(q, &leases[i], queue.Done())
				}
			}
		}
	}
}

func (s *storm) settle(q queue.Queue, lease *queue.Lease, outcome queue.Outcome) {
	s.mu.Lock()
	r := s.resources[lease.Resource]
	if r.lease == lease {
		r.lease = nil // the next may come before the answer does
	}
	if outcome.IsDone() {
		r.asked = max(r.asked, lease.Version)
	}
	s.mu.Unlock()
	err := q.Settle(context.Background(), *lease, outcome)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && outcome.IsDone() {
		r.settled = max(r.settled, lease.Version)
	}
}

// TestDebounceStorm has updates, leases, settlements, retries and lapses of many resources in two lanes meet in every way, through several handles, the second time with
// a server that is killed again and again. No resource is leased twice at a time, nothing old comes after something newer was settled, and in the end the newest of each is done.
func TestDebounceStorm(t *testing.T) {
	for name, kills := range map[string]int{"calm": 0, "kills": 2} {
		t.Run(name, func(t *testing.T) {
			server := private(t, nil)
			opts := postgres.Options{URL: server.Address(), Lease: stormLease}
			s := newStorm()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var senders, workers sync.WaitGroup
			for i := range 4 {
				q := open(t, opts)
				senders.Go(func() { s.update(ctx, q, i, 4) })
			}
			working, rest := context.WithCancel(t.Context())
			defer rest()
			for i := range 4 {
				q := open(t, opts)
				workers.Go(func() { s.work(working, q, []string{"", "slow"}[i%2], uint64(i)) })
			}
			for range kills {
				s.await(t, 60)
				if err := errors.Join(server.Kill(t.Context()), server.Restart(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			s.await(t, 250)
			stop()
			senders.Wait()
			q := open(t, opts)
			s.awaitDone(t, q)
			rest()
			workers.Wait()
			s.balance(t, q)
		})
	}
}

// await waits for so many more leases.
func (s *storm) await(t *testing.T, more int) {
	t.Helper()
	count := func() int { s.mu.Lock(); defer s.mu.Unlock(); return s.leases }
	for until, want := time.Now().Add(30*time.Second), count()+more; count() < want; again(t.Context()) {
		if time.Now().After(until) {
			t.Fatalf("%d leases after half a minute, want %d", count(), want)
		}
	}
}

// awaitDone waits until nothing is left to work on.
func (s *storm) awaitDone(t *testing.T, q queue.Depther) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; again(t.Context()) {
		d, err := q.Depth(t.Context())
		if err == nil && d.Waiting+d.Leased == 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("depth is %+v (%v) after half a minute, want nothing to do", d, err)
		}
	}
}

func (s *storm) balance(t *testing.T, q queue.Depther) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.wrong {
		t.Error(w)
	}
	for name, r := range s.resources {
		if r.asked != r.acked {
			t.Errorf("%s: version %d is the newest that was done, and %d the newest that was acknowledged", name, r.asked, r.acked)
		}
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Done != int64(s.events) || d.Dead != 0 {
		t.Errorf("depth is %+v (%v), want %d done", d, err, s.events)
	}
	if s.lapsed < 5 || s.leases > s.events*9/10 {
		t.Errorf("%d events, %d leases, %d lapsed: the test shows little", s.events, s.leases, s.lapsed)
	}
	t.Logf("%d events, %d leases, %d of which nobody settled", s.events, s.leases, s.lapsed)
}

// again waits a moment, and reports whether to go on.
func again(ctx context.Context) bool {
	pause(ctx)
	return ctx.Err() == nil
}
