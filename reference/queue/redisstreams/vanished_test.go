package redisstreams_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/redisstreams"
)

// persist repeats a call until it succeeds, as a provider and a worker do while a server is away.
func persist(ctx context.Context, call func(context.Context) error) {
	for call(ctx) != nil {
		timer := time.NewTimer(5 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// TestServerForgetsAll: a Redis that writes nothing down comes back empty, without the stream and its group. Nobody can bring back what it had, and it is claimed to keep nothing; but who
// waits for jobs must not fail for ever because there is no group (https://github.com/svix/svix-webhooks/issues/1844): what comes now is received, by handles from before.
func TestServerForgetsAll(t *testing.T) {
	s := startServer(t, map[string]string{"appendonly": "no"})
	opts := redisstreams.Options{Address: s.Address(), Lease: time.Minute}
	sender, worker := open(t, opts), open(t, opts)
	if got := worker.Claims().Durability; got != queue.DurabilityNone {
		t.Errorf("claimed of a server that writes nothing: %s, want %s", got, queue.DurabilityNone)
	}
	enqueue(t, sender, "settled", "leased", "gone")
	leases := receive(t, worker, 2)
	settle(t, worker, leases[0], queue.Done())
	for round := range 3 {
		came := make(chan string, 1)
		ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
		if round > 0 { // it waits when the server goes; in the first round something is there
			go persist(ctx, func(ctx context.Context) error {
				some, err := worker.Receive(ctx, "", 1)
				if err != nil {
					return err
				}
				came <- some[0].EventID
				return worker.Settle(ctx, some[0], queue.Done())
			})
		}
		if err := s.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("new-", round)
		persist(ctx, func(ctx context.Context) error { return sender.Enqueue(ctx, job(id)) })
		if round == 0 {
			if lease := receive(t, worker, 1)[0]; lease.EventID != id {
				t.Errorf("after the restart came %s, want %s", lease.EventID, id)
			}
		} else if got := <-came; got != id {
			t.Errorf("after restart %d came %s, want %s", round, got, id)
		}
		stop()
	}
}

// TestGivenBackThroughKills: what is given back for another try is at no moment in neither place, whenever the server dies. Where one command acknowledges the old entry and another adds
// the new one, a death between them loses the job (https://github.com/svix/svix-webhooks/pull/569).
func TestGivenBackThroughKills(t *testing.T) {
	const jobs, tries, kills = 40, 6, 4
	s := startServer(t, nil)
	q := open(t, redisstreams.Options{Address: s.Address(), Lease: 2 * time.Second})
	for i := range jobs {
		enqueue(t, q, fmt.Sprintf("again-%02d", i))
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var gaveBack, done atomic.Int64
	var mu sync.Mutex
	tried := make(map[string]int)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for ctx.Err() == nil {
				look, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				leases, _ := q.Receive(look, "", 4)
				cancel()
				for _, lease := range leases {
					mu.Lock()
					tried[lease.EventID]++
					n := tried[lease.EventID]
					mu.Unlock()
					if n <= tries {
						if q.Settle(ctx, lease, queue.Retry(20*time.Millisecond, "busy")) == nil {
							gaveBack.Add(1)
						}
					} else if q.Settle(ctx, lease, queue.Done()) == nil {
						done.Add(1)
					}
				}
			}
		})
	}
	for range kills {
		for before := gaveBack.Load(); gaveBack.Load() < before+jobs/2 && done.Load() < jobs/2 && ctx.Err() == nil; {
			pass(t, time.Now().Add(time.Millisecond))
		}
		if err := s.Kill(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// A settlement whose answer the kill took along counts nowhere but in the queue.
	for d, err := q.Depth(ctx); ctx.Err() == nil && (err != nil || d.Done < jobs); d, err = q.Depth(ctx) {
		pass(t, time.Now().Add(10*time.Millisecond))
	}
	stop()
	workers.Wait()
	d, err := q.Depth(t.Context())
	if err != nil || d.Done != jobs || d.Waiting+d.Leased+d.Dead != 0 {
		t.Errorf("Depth: got %+v, error %v; want %d done and nothing else", d, err, jobs)
	}
	t.Logf("%d jobs given back %d times through %d kills", jobs, gaveBack.Load(), kills)
}

// TestRefusedIsNotKnown: an event that the server had no room for is not remembered as one that is known. A mark that is set before the job is stored, and stays when that fails, turns the
// provider's next attempt away as a duplicate (https://github.com/JSONbored/loopover/issues/786).
func TestRefusedIsNotKnown(t *testing.T) {
	s := startServer(t, map[string]string{"maxmemory": "8mb"})
	q := open(t, redisstreams.Options{Address: s.Address()})
	random := rand.New(rand.NewPCG(7, 86))
	large := func(id string) queue.Job {
		j := job(id)
		j.Payload = make([]byte, 100_000)
		for i := range j.Payload {
			j.Payload[i] = byte(random.Uint32())
		}
		return j
	}
	stored := 0
	var refused []queue.Job
	for i := 0; len(refused) < 20; i++ {
		j := large(fmt.Sprintf("%03d", i))
		if err := q.Enqueue(t.Context(), j); err != nil {
			refused = append(refused, j)
		} else {
			stored++
		}
		if stored > 1000 {
			t.Fatal("the server has no limit")
		}
	}
	for range stored {
		settle(t, q, receive(t, q, 1)[0], queue.Done())
	}
	for _, j := range refused {
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Fatalf("Enqueue of a refused event when there is room again: %v", err)
		}
		lease := receive(t, q, 1)[0]
		if lease.EventID != j.EventID {
			t.Fatalf("came %s, want %s", lease.EventID, j.EventID)
		}
		settle(t, q, lease, queue.Done())
	}
}
