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

// fill makes events behind the queue's back: n of them, received a second apart, of which every seventh waits, every eleventh is a dead letter, and all others were done long ago.
func fill(t *testing.T, q *postgres.Queue, n int) {
	t.Helper()
	for _, statement := range []string{
		`INSERT INTO $.events (received_at, version, stored_at, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body)
			SELECT n * 1000000::bigint, 0, clock_timestamp(), 0, 'stripe', lpad(n::text, 6, '0'), '', 'orders/' || n % 2, '', '', '', '\x7b7d' FROM generate_series(1, $1) AS n ORDER BY n`,
		`INSERT INTO $.jobs (id, at, token, attempt, size, leased, lane) SELECT id, clock_timestamp() + interval '1 hour', 3, 3, 2, false, '' FROM $.events WHERE event_id::integer % 7 = 0 AND $1 > 0`,
		`INSERT INTO $.dead (id, at, token, attempts, lane, reason) SELECT id, clock_timestamp(), 2, 2, '', 'no hope' FROM $.events WHERE event_id::integer % 7 <> 0 AND event_id::integer % 11 = 0 AND $1 > 0`,
		`INSERT INTO $.done (id, at, token, attempts, base) SELECT id, clock_timestamp() - interval '1 day', 1, 1, 0 FROM $.events WHERE event_id::integer % 7 <> 0 AND event_id::integer % 11 <> 0 AND $1 > 0`,
		`INSERT INTO $.finished (lane, jobs) SELECT '', count(*) FROM $.done WHERE $1 > 0`,
	} {
		if err := q.Exec(t.Context(), statement, n); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEventsInStretches lists more events than one read covers, while the caller asks the queue for each of some.
func TestEventsInStretches(t *testing.T) {
	const n = 10_000
	q := open(t, fresh(t))
	fill(t, q, n)
	for _, tt := range []struct {
		name   string
		filter queue.EventFilter
		want   func(i int) bool
	}{
		{"all", queue.EventFilter{}, func(int) bool { return true }},
		{"some time", queue.EventFilter{Since: time.Unix(2000, 0), Until: time.Unix(7000, 0)}, func(i int) bool { return i >= 2000 && i < 7000 }},
		{"those that wait", queue.EventFilter{State: queue.StatePending}, func(i int) bool { return i%7 == 0 }},
		{"letters of a type", queue.EventFilter{State: queue.StateFailed, Type: "*/1"}, func(i int) bool { return i%7 != 0 && i%11 == 0 && i%2 == 1 }},
		{"a time without any", queue.EventFilter{Since: time.Unix(20_000, 0)}, func(int) bool { return false }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			next, listed := 0, 0
			err := q.Events(t.Context(), tt.filter, func(e queue.Event) error {
				for next++; !tt.want(next); next++ {
				}
				if want := fmt.Sprintf("%06d", next); e.EventID != want {
					return fmt.Errorf("got event %s, want %s", e.EventID, want)
				}
				if e.State == queue.StatePending && (e.Leases != 3 || e.Since.Before(time.Now())) {
					return fmt.Errorf("got %+v, want one that was leased 3 times and waits for an hour", e)
				}
				if listed++; listed%1000 == 0 {
					_, err := q.Event(t.Context(), e.Provider, e.EventID)
					return err
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for next++; next <= n; next++ {
				if tt.want(next) {
					t.Fatalf("Events ended before %06d", next)
				}
			}
		})
	}
}

// TestSweepInStretches deletes more than one statement looks at, and leaves what is not finished, and what was finished a moment ago.
func TestSweepInStretches(t *testing.T) {
	const n = 10_000
	opts := fresh(t)
	opts.Retention = 10 * time.Hour // looks for itself in half an hour
	q := open(t, opts)
	fill(t, q, n)
	if err := q.Exec(t.Context(), `UPDATE $.done AS d SET at = clock_timestamp() FROM $.events AS e WHERE e.id = d.id AND e.event_id > '009000'`); err != nil {
		t.Fatal(err)
	}
	want := map[queue.State]int{}
	gone := int64(0)
	for i := 1; i <= n; i++ {
		switch {
		case i%7 == 0:
			want[queue.StatePending]++
		case i%11 == 0:
			want[queue.StateFailed]++
		case i > 9000:
			want[queue.StateDone]++
		default:
			gone++
		}
	}
	if err := q.Sweep(); err != nil {
		t.Fatal(err)
	}
	got := map[queue.State]int{}
	err := q.Events(t.Context(), queue.EventFilter{}, func(e queue.Event) error {
		got[e.State]++
		return nil
	})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after the sweep: got %v, error %v, want %v", got, err, want)
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Expired != gone || d.Done != int64(want[queue.StateDone]) || d.Lanes[0].Expired != gone {
		t.Errorf("Depth: got %+v, error %v; want %d expired and %d done", d, err, gone, want[queue.StateDone])
	}
	if err := q.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after, err := q.Depth(t.Context()); err != nil || after.Expired != d.Expired || after.Done != d.Done {
		t.Errorf("Depth after the counts were put together: got %+v, error %v, want %+v", after, err, d)
	}
}

// TestActsStorm replays, redrives, drops and deletes events while they are worked on, from several handles. Each event is in one place at every moment, and the counts are right.
func TestActsStorm(t *testing.T) {
	opts := fresh(t)
	opts.Retention = postgres.MinRetention
	handles := []*postgres.Queue{open(t, opts), open(t, opts)}
	const n = 30
	ctx, stop := context.WithTimeout(t.Context(), 4*time.Second)
	defer stop()
	var all sync.WaitGroup
	for g, q := range handles {
		random := rand.New(rand.NewPCG(uint64(g), 7))
		all.Go(func() { // as if providers sent it all again and again
			for i := 0; ctx.Err() == nil; i++ {
				_ = q.Enqueue(ctx, job(fmt.Sprint("event-", i%n)))
			}
		})
		all.Go(func() { workAtRandom(ctx, q, random) })
		for range 2 {
			all.Go(func() { actAtRandom(ctx, t, q, n, rand.New(rand.NewPCG(uint64(g), 8))) })
		}
	}
	const twice = `SELECT count(*) FROM (SELECT id FROM (SELECT id FROM $.jobs UNION ALL SELECT id FROM $.dead UNION ALL SELECT id FROM $.done) AS p GROUP BY id HAVING count(*) > 1) AS twice`
	for ctx.Err() == nil {
		if got, err := handles[0].Int(t.Context(), twice); err != nil || got != 0 {
			t.Errorf("%d events are in two places, error %v", got, err)
			break
		}
	}
	stop()
	all.Wait()
	for name, query := range map[string]string{
		"events in two places": twice,
		"events in no place": `SELECT count(*) FROM $.events AS e WHERE NOT EXISTS (SELECT FROM $.jobs AS j WHERE j.id = e.id)
			AND NOT EXISTS (SELECT FROM $.dead AS l WHERE l.id = e.id) AND NOT EXISTS (SELECT FROM $.done AS d WHERE d.id = e.id)`,
		"places without an event":      `SELECT count(*) FROM (SELECT id FROM $.jobs UNION ALL SELECT id FROM $.dead UNION ALL SELECT id FROM $.done) AS p WHERE NOT EXISTS (SELECT FROM $.events AS e WHERE e.id = p.id)`,
		"done events counted too many": `SELECT coalesce((SELECT sum(jobs) FROM $.finished), 0)::bigint - (SELECT count(*) FROM $.done WHERE NOT dropped)`,
		"pasts without an event":       `SELECT count(*) FROM (SELECT id FROM $.attempts UNION ALL SELECT id FROM $.acts UNION ALL SELECT id FROM $.steps) AS p WHERE NOT EXISTS (SELECT FROM $.events AS e WHERE e.id = p.id)`,
	} {
		if got, err := handles[0].Int(t.Context(), query); err != nil || got != 0 {
			t.Errorf("%s: got %d, error %v", name, got, err)
		}
	}
	acts, err := handles[0].Int(t.Context(), "SELECT count(*) FROM $.acts")
	d, err2 := handles[0].Depth(t.Context())
	if err := errors.Join(err, err2); err != nil || acts == 0 || d.Expired == 0 {
		t.Errorf("%d acts are known and %d events were deleted, error %v: the test did not reach what it is for", acts, d.Expired, err)
	}
}

// workAtRandom receives and settles in one way or another.
func workAtRandom(ctx context.Context, q *postgres.Queue, random *rand.Rand) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 4)
		if err != nil {
			return
		}
		for _, lease := range leases {
			outcome := []queue.Outcome{queue.Done(), queue.Dead("no hope"), queue.Retry(0, "again"), queue.Done()}[random.IntN(4)]
			_ = q.Finish(ctx, lease, "a step")
			_ = q.Settle(ctx, lease, outcome)
		}
	}
}

// actAtRandom does what people do, to any event. What is refused is refused for one of the known reasons.
func actAtRandom(ctx context.Context, t *testing.T, q *postgres.Queue, n int, random *rand.Rand) {
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
