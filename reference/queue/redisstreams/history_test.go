package redisstreams_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/redisstreams"
)

// TestHistoryWithoutRetention: what is not finished has its whole history, and can be replayed. Of what is finished nothing is left.
func TestHistoryWithoutRetention(t *testing.T) {
	q := open(t, onShared(t))
	enqueue(t, q, "done", "dead", "leased", "waits")
	for _, lease := range receive(t, q, 3) {
		switch lease.EventID {
		case "done":
			settle(t, q, lease, queue.Done())
		case "dead":
			settle(t, q, lease, queue.Dead("no hope"))
		}
	}
	for id, want := range map[string]queue.State{"dead": queue.StateFailed, "leased": queue.StateProcessing, "waits": queue.StatePending} {
		e, err := q.Event(t.Context(), "stripe", id)
		if err != nil || e.State != want || string(e.Payload) != string(job(id).Payload) || e.Since.IsZero() && want != queue.StatePending {
			t.Errorf("Event %s: got %+v, error %v; want it %s", id, e, err, want)
		}
	}
	_, err := q.Event(t.Context(), "stripe", "done")
	if replay := q.Replay(t.Context(), "stripe", "done", false); !errors.Is(err, queue.ErrUnknownEvent) || !errors.Is(replay, queue.ErrUnknownEvent) {
		t.Errorf("Event and Replay of what is done: got errors %v and %v, want %v", err, replay, queue.ErrUnknownEvent)
	}
	none := func(queue.Event) error { return errors.New("an event") }
	if err := q.Events(t.Context(), queue.EventFilter{}, none); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Events: got error %v, want %v", err, errors.ErrUnsupported)
	}
	var leased []string
	err = q.Events(t.Context(), queue.EventFilter{State: queue.StateProcessing}, func(e queue.Event) error {
		leased = append(leased, e.EventID)
		return nil
	})
	if diff := cmp.Diff([]string{"leased"}, leased); err != nil || diff != "" {
		t.Errorf("Events that are leased: error %v (-want +got):\n%s", err, diff)
	}
	if err := q.Replay(t.Context(), "stripe", "dead", true); err != nil {
		t.Errorf("Replay of a letter: %v", err)
	}
	for range 2 {
		settle(t, q, receive(t, q, 1)[0], queue.Done())
	}
}

// TestKnownForLongerThanKept: an event whose payload is gone is known all the same, and its name leaves the order of coming. That of a letter stays.
func TestKnownForLongerThanKept(t *testing.T) {
	opts := onShared(t)
	opts.Retention = redisstreams.MinRetention
	q := open(t, opts)
	enqueue(t, q, "letter")
	settle(t, q, receive(t, q, 1)[0], queue.Dead("no hope"))
	for i := range 300 { // more than a page
		enqueue(t, q, fmt.Sprint("event-", i))
	}
	begin := time.Now()
	for _, lease := range receive(t, q, 300) {
		settle(t, q, lease, queue.Done())
	}
	settled := time.Now()
	c := client(t, opts.Address)
	came := "{" + opts.Namespace + "}:came"
	if got := c.XLen(t.Context(), came).Val(); got != 301 && time.Since(begin) < opts.Retention {
		t.Errorf("in the order of coming: got %d events, want 301", got)
	}
	pass(t, settled.Add(opts.Retention+10*time.Millisecond))
	if err := q.Sweep(); err != nil {
		t.Fatal(err)
	}
	if got := c.XLen(t.Context(), came).Val(); got != 1 {
		t.Errorf("in the order of coming: got %d events after the retention, want the letter", got)
	}
	keys, err := c.Keys(t.Context(), "{"+opts.Namespace+"}:kept:*").Result()
	if err != nil || len(keys) != 0 {
		t.Errorf("kept after the retention: got %q, error %v", keys, err)
	}
	if _, err := q.Event(t.Context(), "stripe", "event-7"); !errors.Is(err, queue.ErrUnknownEvent) {
		t.Errorf("Event after the retention: got error %v, want %v", err, queue.ErrUnknownEvent)
	}
	enqueue(t, q, "event-7")
	receiveNone(t, q)
}

// TestEventsWithLongNames lists events whose texts are longer than what a listing reads of each.
func TestEventsWithLongNames(t *testing.T) {
	opts := onShared(t)
	opts.Retention = time.Hour
	q := open(t, opts)
	for _, length := range []int{0, 480, 500, 510, 520, 5000} {
		j := job(fmt.Sprint("long-", length))
		j.DeliveryID, j.Type = strings.Repeat("d", length), "orders/"+fmt.Sprint(length)
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	listed := 0
	err := q.Events(t.Context(), queue.EventFilter{}, func(e queue.Event) error {
		listed++
		if e.Type != "orders/"+strings.TrimPrefix(e.EventID, "long-") || e.DeliveryID != "" || e.Payload != nil {
			return fmt.Errorf("got %+v", e)
		}
		return nil
	})
	if err != nil || listed != 6 {
		t.Errorf("Events: got %d, error %v, want 6", listed, err)
	}
}

// TestPastIsBounded: a job that is tried without end does not fill the memory. Its newest attempts are known, and how many there were.
func TestPastIsBounded(t *testing.T) {
	q := open(t, onShared(t))
	enqueue(t, q, "hopeless")
	for i := range 300 {
		settle(t, q, receive(t, q, 1)[0], queue.Retry(0, fmt.Sprint("attempt ", i+1)))
	}
	e, err := q.Event(t.Context(), "stripe", "hopeless")
	if err != nil || e.Leases != 300 || len(e.Attempts) != 256 {
		t.Fatalf("Event: got %d leases and %d attempts, error %v; want 300 and the newest 256", e.Leases, len(e.Attempts), err)
	}
	for i, a := range e.Attempts {
		if want := i + 45; a.Number != want || a.Reason != fmt.Sprint("attempt ", want) {
			t.Fatalf("got attempt %+v, want number %d", a, want)
		}
	}
}

// TestRetentionWithoutMemory: with the memory used up, jobs end as they do without a retention; but the room comes with the end of that, or with a replay that is done.
func TestRetentionWithoutMemory(t *testing.T) {
	s := startServer(t, map[string]string{"maxmemory": "8mb"})
	q := open(t, redisstreams.Options{Address: s.Address(), Retention: time.Hour})
	stored := 0
	for random := rand.New(rand.NewPCG(3, 4)); ; stored++ {
		j := job(fmt.Sprintf("%03d", stored))
		j.Payload = make([]byte, 100_000)
		for i := range j.Payload {
			j.Payload[i] = byte(random.Uint32())
		}
		if err := q.Enqueue(t.Context(), j); err != nil {
			break
		}
	}
	leases := receive(t, q, stored)
	for i, lease := range leases {
		settle(t, q, lease, []queue.Outcome{queue.Done(), queue.Dead("no memory"), queue.Retry(time.Hour, "no memory"), queue.Retry(0, "no memory")}[i%4])
	}
	for i, lease := range leases {
		if err := q.Replay(t.Context(), lease.Provider, lease.EventID, false); err != nil && i%4 != 3 { // one that is due already needs nothing but memory
			t.Errorf("Replay of event %d: %v", i, err)
		}
	}
	got := 0
	for _, lease := range receive(t, q, stored) {
		settle(t, q, lease, queue.Done())
		got++
	}
	d, err := q.Depth(t.Context())
	if err != nil || got != stored || d.Done != int64(stored) || d.Waiting+d.Leased+d.Dead != 0 {
		t.Errorf("of %d events %d came again, error %v, and the depth is %+v", stored, got, err, d)
	}
}

// TestActsStorm replays, redrives and drops events while they are worked on, from several handles and on a clock that deletes them. Afterwards the counts are those of the events.
func TestActsStorm(t *testing.T) {
	for name, window := range map[string]time.Duration{"known for ever": 0, "known for as long as kept": redisstreams.MinRetention} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			actsStorm(t, window)
		})
	}
}

func actsStorm(t *testing.T, window time.Duration) {
	opts := onShared(t)
	opts.Retention, opts.DedupWindow = redisstreams.MinRetention, window
	if window == 0 {
		opts.Retention = time.Hour
	}
	handles := []*redisstreams.Queue{open(t, opts), open(t, opts)}
	const n = 30
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	var all sync.WaitGroup
	for g, q := range handles {
		all.Go(func() { // as if providers sent it all again and again
			for i := 0; ctx.Err() == nil; i++ {
				_ = q.Enqueue(ctx, job(fmt.Sprint("event-", i%n)))
			}
		})
		all.Go(func() { workAtRandom(ctx, q, rand.New(rand.NewPCG(uint64(g), 7))) })
		for i := range 2 {
			all.Go(func() { actAtRandom(ctx, t, q, n, rand.New(rand.NewPCG(uint64(g), uint64(8+i)))) })
		}
	}
	all.Wait()
	states := map[queue.State]int64{}
	acts := 0
	for i := range n {
		e, err := handles[0].Event(t.Context(), "stripe", fmt.Sprint("event-", i))
		if err != nil {
			if window == 0 || !errors.Is(err, queue.ErrUnknownEvent) {
				t.Errorf("Event %d: %v", i, err)
			}
			continue
		}
		states[e.State]++
		acts += len(e.Acts)
	}
	d, err := handles[0].Depth(t.Context())
	if err != nil || d.Dead != states[queue.StateFailed] || d.Waiting+d.Leased != states[queue.StatePending]+states[queue.StateProcessing] {
		t.Errorf("the events are %v, and the depth is %+v, error %v", states, d, err)
	}
	if window == 0 && d.Done != states[queue.StateDone] {
		t.Errorf("%d events are done, and the depth is %+v", states[queue.StateDone], d)
	}
	if acts == 0 {
		t.Error("nobody has done anything with any event: the test did not reach what it is for")
	}
}

// workAtRandom receives and settles in one way or another.
func workAtRandom(ctx context.Context, q *redisstreams.Queue, random *rand.Rand) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 4)
		if err != nil {
			return
		}
		for _, lease := range leases {
			outcome := []queue.Outcome{queue.Done(), queue.Dead("no hope"), queue.Retry(0, "again"), queue.Retry(time.Millisecond, "soon"), queue.Done()}[random.IntN(5)]
			_ = q.Finish(ctx, lease, "a step")
			_ = q.Settle(context.WithoutCancel(ctx), lease, outcome)
		}
	}
}

// actAtRandom does what people do, to any event. What is refused is refused for one of the known reasons.
func actAtRandom(ctx context.Context, t *testing.T, q *redisstreams.Queue, n int, random *rand.Rand) {
	for ctx.Err() == nil {
		id := fmt.Sprint("event-", random.IntN(n))
		var err error
		switch random.IntN(3) {
		case 0:
			err = q.Replay(t.Context(), "stripe", id, random.IntN(2) == 0)
		case 1:
			err = q.Redrive(t.Context(), "stripe", id)
		case 2:
			err = q.Drop(t.Context(), "stripe", id)
		}
		if err != nil && !errors.Is(err, queue.ErrUnknownEvent) && !errors.Is(err, queue.ErrNotDead) && !errors.Is(err, queue.ErrInProgress) {
			t.Errorf("an act on %s: %v", id, err)
		}
	}
}
