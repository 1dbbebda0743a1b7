package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
)

// pause waits a moment before something is tried again.
func pause(ctx context.Context) {
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
}

// books are what the callers of a queue were told.
type books struct {
	mu sync.Mutex
	// tokens are the last ones seen; settled events got nil from Settle, asked ones any answer.
	tokens         map[string]int64
	settled, asked map[string]bool
	attempts       map[string]int
	wrong          []string
}

func (b *books) take(lease queue.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settled[lease.EventID] {
		b.wrong = append(b.wrong, lease.EventID+" was settled and came again")
	}
	if lease.Token <= b.tokens[lease.EventID] {
		b.wrong = append(b.wrong, fmt.Sprintf("%s came with token %d after %d", lease.EventID, lease.Token, b.tokens[lease.EventID]))
	}
	b.tokens[lease.EventID], b.attempts[lease.EventID] = lease.Token, lease.Attempt
}

func (b *books) settle(id string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[id] = true
	if err == nil {
		b.settled[id] = true
	}
}

// work receives until ctx ends and settles four of five leases; the fifth lapses, until it comes for the third time.
func (b *books) work(ctx context.Context, q *postgres.Queue) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 10)
		if err != nil {
			pause(ctx)
			continue
		}
		for _, lease := range leases {
			b.take(lease)
			if lease.ID%5 == 0 && lease.Attempt < 3 {
				continue
			}
			b.settle(lease.EventID, q.Settle(context.WithoutCancel(ctx), lease, queue.Done()))
		}
	}
}

// TestKilledServer kills the server three times under load. What was acknowledged must be there, once; what was settled must not come again; leases that
// were out lapse, and no token is given out twice; and the handle heals by itself.
func TestKilledServer(t *testing.T) {
	s := private(t, nil)
	q := open(t, postgres.Options{URL: s.Address(), Lease: 2 * time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stored, failed atomic.Int64
	reached := make(chan struct{}, 1)
	enqueuing, enough := context.WithCancel(ctx)
	var enqueuers sync.WaitGroup
	for g := range 6 {
		enqueuers.Go(func() {
			for i := 0; enqueuing.Err() == nil; i++ {
				j := job(fmt.Sprintf("load-%d-%06d", g, i))
				for ctx.Err() == nil && q.Enqueue(ctx, j, job("seen by all")) != nil { // as a provider tries again
					failed.Add(1)
					pause(ctx)
				}
				stored.Add(1)
				select {
				case reached <- struct{}{}:
				default:
				}
			}
		})
	}
	books := &books{tokens: map[string]int64{}, settled: map[string]bool{}, asked: map[string]bool{}, attempts: map[string]int{}}
	working, rest := context.WithCancel(ctx)
	var worker sync.WaitGroup
	worker.Go(func() { books.work(working, q) })
	for round := range int64(3) {
		for stored.Load() < 300*(round+1) {
			<-reached
		}
		if round == 1 {
			crash(t, s)
		}
		if err := errors.Join(s.Kill(ctx), s.Restart(ctx)); err != nil { // the first process alone, but for round 1
			t.Fatal(err)
		}
	}
	enough()
	enqueuers.Wait()
	want := stored.Load() + 1
	if n, err := q.Int(ctx, "SELECT count(*) FROM $.events"); err != nil || n != want {
		t.Errorf("events: got %d, error %v, want %d", n, err, want)
	}
	for {
		d, err := q.Depth(ctx)
		if err != nil {
			t.Fatalf("Depth: %v", err)
		}
		if d.Done == want && d.Waiting+d.Leased+d.Dead == 0 {
			break
		}
		pause(ctx)
	}
	rest()
	worker.Wait()
	for _, w := range books.wrong {
		t.Error(w)
	}
	again := 0
	for id, attempts := range books.attempts {
		if attempts > 1 {
			again++
		}
		if !books.asked[id] {
			t.Errorf("%s is done and nobody settled it", id)
		}
	}
	if int64(len(books.attempts)) != want || failed.Load() == 0 || again == 0 {
		t.Errorf("%d of %d events came, %d of them again, and %d calls failed: the test did not reach what it is for", len(books.attempts), want, again, failed.Load())
	}
	t.Logf("%d events through three kills, %d leased more than once, %d calls failed", want, again, failed.Load())
}

// TestAsyncCommitLoses shows why the weaker variant claims nothing: the log of what was acknowledged waits in the server's own memory.
func TestAsyncCommitLoses(t *testing.T) {
	for name, async := range map[string]bool{"asynchronous": true, "synchronous": false} {
		t.Run(name, func(t *testing.T) {
			s := private(t, map[string]string{"wal_writer_delay": "10s", "autovacuum": "off"})
			q := open(t, postgres.Options{URL: s.Address()}) // its tables are synced
			weak := open(t, postgres.Options{URL: s.Address(), AsyncCommit: async})
			enqueue(t, weak, "acknowledged")
			crash(t, s)
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			n, err := q.Int(t.Context(), "SELECT count(*) FROM $.events")
			for err != nil { // the reader's connection broke with the server
				pause(t.Context())
				n, err = q.Int(t.Context(), "SELECT count(*) FROM $.events")
			}
			want, durability := int64(1), queue.DurabilityPower
			if async {
				want, durability = 0, queue.DurabilityNone
			}
			if got := weak.Claims().Durability; n != want || got != durability {
				t.Errorf("%d events after the kill under the claim %q, want %d under %q", n, got, want, durability)
			}
		})
	}
}

// TestWithoutFsync survives the end of the processes, as it claims.
func TestWithoutFsync(t *testing.T) {
	s := private(t, map[string]string{"fsync": "off"})
	q := open(t, postgres.Options{URL: s.Address()})
	if c := q.Claims(); c.Durability != queue.DurabilityProcess || c.Settings["fsync"] != "off" {
		t.Errorf("claims without fsync: got %+v", c)
	}
	enqueue(t, q, "acknowledged")
	crash(t, s)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	q = open(t, postgres.Options{URL: s.Address()})
	if got := receive(t, q, 1)[0].EventID; got != "acknowledged" {
		t.Errorf("after the kill: got %s", got)
	}
}

// TestPausedServer stops the server where it stands. Callers are free to leave, and nothing is lost or done twice when it goes on.
func TestPausedServer(t *testing.T) {
	s := private(t, nil)
	q := open(t, postgres.Options{URL: s.Address()})
	enqueue(t, q, "before")
	settle(t, q, receive(t, q, 1)[0], queue.Retry(0, "it has seen every session"))
	thaw := freeze(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	answers := make(chan error, 2)
	go func() { answers <- q.Enqueue(ctx, job("during")) }()
	go func() {
		_, err := q.Receive(ctx, "", 1)
		answers <- err
	}()
	for range cap(answers) {
		if err := <-answers; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call on a paused server: got error %v, want that of its context", err)
		}
	}
	thaw()
	enqueue(t, q, "during") // whether or not it was stored
	got := map[string]int{}
	for len(got) < 2 {
		for _, lease := range receive(t, q, 1) {
			got[lease.EventID] = lease.Attempt
			settle(t, q, lease, queue.Done())
		}
	}
	if got["before"] != 2 || got["during"] != 1 {
		t.Errorf("attempts: got %v, want 2 and 1: a lease that nobody waited for is given back", got)
	}
}
