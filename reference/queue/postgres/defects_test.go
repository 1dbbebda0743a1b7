package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
)

// TestPlans fails when a statement walks over a table. The plans are made while the tables are empty, as a session of the first minute makes them,
// and are looked at again when the tables are full.
func TestPlans(t *testing.T) {
	q := open(t, fresh(t))
	var ids []int64
	for _, fill := range []int{0, 20_000} {
		if fill > 0 {
			err := errors.Join(q.Exec(t.Context(), `INSERT INTO $.jobs SELECT n, clock_timestamp(), 1, 1, 1, n % 2 = 0, '' FROM generate_series(1, $1) AS n`, fill),
				q.Exec(t.Context(), `INSERT INTO $.events (received_at, version, stored_at, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body)
					SELECT 0, 0, now(), 0, 'p', n::text, '', '', '', '', '', '' FROM generate_series(1, $1) AS n`, fill))
			if err != nil {
				t.Fatal(err)
			}
			for i := range int64(64) {
				ids = append(ids, 2*i+2)
			}
		}
		for name, statement := range q.Statements(ids) {
			plan, err := q.Plan(t.Context(), statement)
			if err != nil {
				t.Fatalf("plan of %s: %v", name, err)
			}
			if strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "jobs_") || name != "settle" && !strings.Contains(plan, "Index Cond: ((lane = ") {
				t.Errorf("%s with %d jobs does not use its index:\n%s", name, fill, plan)
			}
			if name == "settle" && strings.Count(plan, "Index Cond: (id = ") != 5 {
				t.Errorf("%s with %d jobs does not look each job up:\n%s", name, fill, plan)
			}
		}
	}
	plan, err := q.Plan(t.Context(), postgres.Statement{SQL: "SELECT id FROM $.jobs WHERE size = 7"})
	if err != nil || !strings.Contains(plan, "Seq Scan") {
		t.Errorf("a query without an index: got plan %q, error %v; this test cannot fail", plan, err)
	}
}

// TestClaimUnderOldSnapshot: an open transaction keeps the entries of finished jobs from being removed. A look from the very beginning walks over all of
// them; one from where jobs are left must not (https://planetscale.com/blog/keeping-a-postgres-queue-healthy).
func TestClaimUnderOldSnapshot(t *testing.T) {
	opts := fresh(t)
	q := open(t, opts)
	conn, err := pgx.Connect(t.Context(), opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class"); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		jobs := make([]queue.Job, 1000)
		for i := range jobs {
			jobs[i] = job(fmt.Sprint(time.Now().UnixNano(), i))
		}
		if err := q.Enqueue(t.Context(), jobs...); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for done := 0; done < len(jobs); {
			leases := receive(t, q, len(jobs))
			done += len(leases)
			for _, lease := range leases {
				wg.Go(func() { settle(t, q, lease, queue.Done()) })
			}
		}
		wg.Wait()
	}
	enqueue(t, q, "alive")
	var touched []int
	for _, from := range []string{"-infinity", q.Born(t.Context(), "alive")} {
		said, err := q.Run(t.Context(), q.ClaimFrom(from))
		if err != nil {
			t.Fatal(err)
		}
		_, hits, _ := strings.Cut(said, "Buffers: shared hit=")
		var n int
		if _, err := fmt.Sscan(hits, &n); err != nil {
			t.Fatalf("%v in\n%s", err, said)
		}
		touched = append(touched, n)
	}
	if touched[0] < 3*touched[1] {
		t.Errorf("pages touched by a claim: %d from the very beginning, %d from where jobs are left; want a third at most", touched[0], touched[1])
	}
}

// hold locks a table against everybody until release.
func hold(t *testing.T, opts postgres.Options, table string) (release func()) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	name := pgx.Identifier{opts.Namespace, table}.Sanitize()
	for _, statement := range []string{"BEGIN", "LOCK TABLE " + name} {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
			t.Error(err)
		}
		_ = conn.Close(t.Context())
	}
}

// until polls for what has no signal.
func until(t *testing.T, what string, ready func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !ready() {
		if ctx.Err() != nil {
			t.Fatalf("%s: it did not happen", what)
		}
		pause(ctx)
	}
}

// blocked is how many sessions wait for a lock of a table.
func blocked(t *testing.T, q *postgres.Queue, opts postgres.Options, table string) int64 {
	t.Helper()
	n, err := q.Int(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass($1)`, pgx.Identifier{opts.Namespace, table}.Sanitize())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGroups: calls that come while the server is busy share a transaction, and the one that is refused does not take its neighbours along.
func TestGroups(t *testing.T) {
	opts := fresh(t)
	q := open(t, opts)
	if err := q.Exec(t.Context(), `ALTER TABLE $.events ADD CHECK (event_id <> 'refused')`); err != nil {
		t.Fatal(err)
	}
	const calls = 64
	for _, refused := range []bool{false, true} {
		release := hold(t, opts, "events")
		var wg sync.WaitGroup
		var failed atomic.Int64
		call := func(id string) {
			wg.Go(func() {
				if q.Enqueue(t.Context(), job(id)) != nil {
					failed.Add(1)
				}
			})
		}
		for i := range 2 { // they keep both writers busy
			call(fmt.Sprint("first-", refused, i))
			until(t, "a writer waits", func() bool { return blocked(t, q, opts, "events") == int64(i)+1 })
		}
		for i := range calls {
			call(fmt.Sprint("call-", refused, i))
		}
		if refused {
			call("refused")
		}
		waiting := calls
		if refused {
			waiting++
		}
		until(t, "the calls wait", func() bool { return q.Waiting() == waiting })
		release()
		wg.Wait()
		transactions, err := q.Int(t.Context(), `SELECT count(DISTINCT xmin::text) FROM $.events WHERE event_id LIKE $1`, fmt.Sprint("call-", refused, "%"))
		if err != nil {
			t.Fatal(err)
		}
		events, err := q.Int(t.Context(), `SELECT count(*) FROM $.events WHERE event_id LIKE $1`, fmt.Sprint("call-", refused, "%"))
		if err != nil {
			t.Fatal(err)
		}
		if !refused && (transactions > 2 || failed.Load() != 0) || refused && failed.Load() != 1 || events != calls {
			t.Errorf("refused %v: %d calls became %d events in %d transactions, %d failed", refused, calls, events, transactions, failed.Load())
		}
	}
}

// TestClaimGivesBack: the caller leaves while his claim is under way, and the job is not lost to a lease that nobody has.
func TestClaimGivesBack(t *testing.T) {
	opts := fresh(t)
	q := open(t, opts)
	enqueue(t, q, "one")
	release := hold(t, opts, "jobs")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := q.Receive(ctx, "", 1)
		ended <- err
	}()
	until(t, "the claim waits", func() bool { return blocked(t, q, opts, "jobs") == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Receive: got error %v, want %v", err, context.Canceled)
	}
	release()
	if lease := receive(t, q, 1)[0]; lease.Attempt != 1 || lease.Token != 2 {
		t.Errorf("got attempt %d with token %d, want 1 and 2", lease.Attempt, lease.Token)
	}
}

// TestNoDeadlock has two handles store the same events in opposite orders. Statements that lock what they share in different orders wait for each
// other in a circle, until the server ends one of them (https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-DEADLOCKS, read November 2026).
func TestNoDeadlock(t *testing.T) {
	opts := fresh(t)
	forward, backward := open(t, opts), open(t, opts)
	var wg sync.WaitGroup
	for round := range 20 {
		var up, down []queue.Job
		for i := range 200 {
			up = append(up, job(fmt.Sprintf("%d-%03d", round, i)))
			down = append(down, job(fmt.Sprintf("%d-%03d", round, 199-i)))
		}
		for q, jobs := range map[*postgres.Queue][]queue.Job{forward: up, backward: down} {
			wg.Go(func() {
				if err := q.Enqueue(t.Context(), jobs...); err != nil {
					t.Errorf("Enqueue: %v", err)
				}
			})
		}
		wg.Wait()
	}
	if n, err := forward.Int(t.Context(), "SELECT count(*) FROM $.jobs"); err != nil || n != 4000 {
		t.Errorf("got %d jobs, error %v, want 4000", n, err)
	}
	if n, err := forward.Int(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); err != nil || n != 0 {
		t.Errorf("got %d deadlocks, error %v, want none", n, err)
	}
}

// TestOrderOfABatch: what came in one call is leased in its order, though it is stored in that of its keys.
func TestOrderOfABatch(t *testing.T) {
	q := open(t, fresh(t))
	jobs := []queue.Job{job("c"), job("a"), job("d"), job("b")}
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range jobs {
		got = append(got, receive(t, q, 1)[0].EventID)
	}
	if diff := cmp.Diff([]string{"c", "a", "d", "b"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestLateCommit: a job that became visible after younger ones were leased is found all the same.
func TestLateCommit(t *testing.T) {
	q := open(t, fresh(t))
	enqueue(t, q, "young")
	receive(t, q, 1)
	err := q.Exec(t.Context(), `WITH e AS (INSERT INTO $.events (received_at, version, stored_at, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body)
		VALUES (0, 0, now() - interval '1 hour', 0, 'stripe', 'old', '', '', '', '', '', '') RETURNING id, stored_at)
		INSERT INTO $.jobs SELECT id, stored_at, 0, 0, 0, false, '' FROM e`)
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, q, 1)[0].EventID; got != "old" {
		t.Errorf("got %s, want old", got)
	}
}

// TestDamagedBody: a body that nobody can read becomes a dead letter, and the others go on.
func TestDamagedBody(t *testing.T) {
	q := open(t, fresh(t))
	enqueue(t, q, "damaged", "good")
	if err := q.Exec(t.Context(), `UPDATE $.events SET encoding = 9 WHERE event_id = 'damaged'`); err != nil {
		t.Fatal(err)
	}
	told := make(chan queue.DeadLetter, 10)
	q.TellDead(func(l queue.DeadLetter) { told <- l })
	if got := receive(t, q, 2); len(got) != 1 || got[0].EventID != "good" {
		t.Errorf("got %v, want the good one", got)
	}
	if len(told) != 1 {
		t.Fatalf("told of %d letters, want 1", len(told))
	}
	if l := <-told; l.EventID != "damaged" || l.Attempts != 1 || !strings.Contains(l.Reason, "encoding 9") {
		t.Errorf("told of %+v", l)
	}
	if got := letters(t, q); len(got) != 1 || !strings.Contains(got[0].Reason, "encoding 9") {
		t.Errorf("dead letters: got %v", got)
	}
}

func TestRedrive(t *testing.T) {
	q := open(t, fresh(t))
	enqueue(t, q, "story")
	settle(t, q, receive(t, q, 1)[0], queue.Retry(0, strings.Repeat("ü", 5000)))
	last := receive(t, q, 1)[0]
	settle(t, q, last, queue.Dead("a\x00b\xff\\"))
	if got := letters(t, q); len(got) != 1 || got[0].Reason != "a\x00b\xff\\" || got[0].Attempts != 2 {
		t.Errorf("dead letters: got %+v", got)
	}
	if err := q.Redrive(t.Context(), "stripe", "story"); err != nil {
		t.Fatalf("Redrive: %v", err)
	}
	for _, id := range []string{"story", "never sent"} {
		if err := q.Redrive(t.Context(), "stripe", id); err == nil {
			t.Errorf("Redrive of %s, which is not dead: got no error", id)
		}
	}
	lease := receive(t, q, 1)[0]
	if lease.Attempt != 1 || lease.Token <= last.Token {
		t.Errorf("after Redrive: got attempt %d with token %d, want 1 and more than %d", lease.Attempt, lease.Token, last.Token)
	}
	settle(t, q, lease, queue.Done())
	n, err := q.Int(t.Context(), `SELECT count(*) FROM $.attempts WHERE reason = repeat('ü', 2048) || '...' AND attempt = 1 OR attempt = 2`)
	if err != nil || n != 2 {
		t.Errorf("attempts that are written down: got %d, error %v, want 2", n, err)
	}
}

func TestLongKeys(t *testing.T) {
	q := open(t, fresh(t))
	long := job(strings.Repeat("x", 3000))
	lane := job("lane")
	lane.Lane = strings.Repeat("x", 3000)
	for _, j := range []queue.Job{long, lane} {
		if err := q.Enqueue(t.Context(), j); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("Enqueue with a key of 3000 bytes: got error %v, want %v", err, queue.ErrTooLarge)
		}
	}
	random := job(strings.Repeat("\xff", 498)) // 1,992 bytes as it is stored
	random.Lane = random.EventID
	if err := q.Enqueue(t.Context(), random); err != nil {
		t.Errorf("Enqueue of a key that fits: %v", err)
	}
}

// TestCompact puts the counts of finished jobs together, which changes no sum.
func TestCompact(t *testing.T) {
	q := open(t, fresh(t))
	for i := range 30 {
		enqueue(t, q, fmt.Sprint(i))
		settle(t, q, receive(t, q, 1)[0], queue.Done())
	}
	if err := q.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := q.Int(t.Context(), "SELECT count(*) FROM $.finished")
	if err != nil || rows != 1 {
		t.Errorf("rows of counts: got %d, error %v, want 1", rows, err)
	}
	if d, err := q.Depth(t.Context()); err != nil || d.Done != 30 {
		t.Errorf("Depth: got %+v, error %v, want 30 done", d, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	url := address(t)
	for name, opts := range map[string]postgres.Options{
		"a long namespace":     {URL: url, Namespace: strings.Repeat("x", 64)},
		"a namespace with 0":   {URL: url, Namespace: "a\x00b"},
		"a system's namespace": {URL: url, Namespace: "pg_mine"},
		"a short retention":    {URL: url, Retention: time.Millisecond},
		"a short lease":        {URL: url, Lease: time.Microsecond},
		"no payload":           {URL: url, MaxPayload: -1},
		"no URL":               {URL: "postgres://%"},
		"no server":            {URL: "postgres://postgres@127.0.0.1:1/postgres"},
	} {
		if q, err := postgres.Open(t.Context(), opts); err == nil {
			_ = q.Close(t.Context())
			t.Errorf("Open with %s: got no error", name)
		}
	}
	opts := fresh(t)
	if err := open(t, opts).Exec(t.Context(), "UPDATE $.meta SET version = 99"); err != nil {
		t.Fatal(err)
	}
	if q, err := postgres.Open(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "99") {
		if err == nil {
			_ = q.Close(t.Context())
		}
		t.Errorf("Open of version 99: got error %v, want one that names it", err)
	}
}

func TestOpenTogether(t *testing.T) {
	opts := fresh(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			q, err := postgres.Open(t.Context(), opts)
			if err == nil {
				err = errors.Join(q.Enqueue(t.Context(), job("one")), q.Close(t.Context()))
			}
			if err != nil {
				t.Errorf("Open by eight at once: %v", err)
			}
		})
	}
	wg.Wait()
}
