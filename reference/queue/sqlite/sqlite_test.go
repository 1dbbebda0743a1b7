package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/sqlite"
)

func TestMain(m *testing.M) {
	queuetest.Child(func(ctx context.Context, dir string, lease time.Duration) (queue.Queue, error) {
		return sqlite.Open(ctx, dir, sqlite.Options{Lease: lease})
	})
	benchmarkProcess()
	goleak.VerifyTestMain(m)
}

// open opens a queue that is closed with the test.
func open(t testing.TB, dir string, opts sqlite.Options) *sqlite.Queue {
	t.Helper()
	q, err := sqlite.Open(t.Context(), dir, opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return q
}

func job(id string) queue.Job {
	return queue.Job{Provider: "stripe", EventID: id, Payload: []byte(`{"id":"` + id + `"}`)}
}

func enqueue(t testing.TB, q *sqlite.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Enqueue(t.Context(), job(id)); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
}

func receive(t testing.TB, q *sqlite.Queue, limit int) []queue.Lease {
	t.Helper()
	leases, err := q.Receive(t.Context(), "", limit)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	return leases
}

func settle(t testing.TB, q *sqlite.Queue, lease queue.Lease, outcome queue.Outcome) {
	t.Helper()
	if err := q.Settle(t.Context(), lease, outcome); err != nil {
		t.Fatalf("Settle: %v", err)
	}
}

func TestContract(t *testing.T) {
	for _, synchronous := range []string{sqlite.SynchronousFull, sqlite.SynchronousNormal} {
		t.Run(synchronous, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, func(t testing.TB) queuetest.Opened {
				dir := t.TempDir()
				first, err := sqlite.Open(t.Context(), dir, sqlite.Options{Synchronous: synchronous})
				if err != nil {
					t.Fatalf("Open: %v", err)
				}
				defer func() { _ = first.Close(t.Context()) }()
				return queuetest.Opened{
					Claims:  first.Claims(),
					Address: dir,
					Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
						return sqlite.Open(ctx, dir, sqlite.Options{Synchronous: synchronous, Lease: lease})
					},
				}
			})
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, opts := range map[string]sqlite.Options{
		"synchronous":     {Synchronous: "OFF"},
		"short lease":     {Lease: time.Microsecond},
		"negative lease":  {Lease: -time.Second},
		"no payload":      {MaxPayload: -1},
		"log without end": {WALLimit: 1},
		"short retention": {Retention: time.Second},
	} {
		if q, err := sqlite.Open(t.Context(), t.TempDir(), opts); err == nil {
			_ = q.Close(t.Context())
			t.Errorf("Open with %s: got no error", name)
		}
	}
}

func TestOpenRefusesNewerFile(t *testing.T) {
	dir := t.TempDir()
	q := open(t, dir, sqlite.Options{})
	if err := q.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatalf("raise the version: %v", err)
	}
	if newer, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "99") {
		if err == nil {
			_ = newer.Close(t.Context())
		}
		t.Errorf("Open of a file with schema version 99: got error %v, want one that names it", err)
	}
}

func TestOpenOddPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b?c=d#e%20f&_pragma=x")
	if runtime.GOOS == "windows" {
		dir = filepath.Join(t.TempDir(), "a b#e%20f&_pragma=x")
	}
	enqueue(t, open(t, dir, sqlite.Options{}), "here")
	if _, err := os.Stat(filepath.Join(dir, "queue.db")); err != nil {
		t.Errorf("the file is not where it should be: %v", err)
	}
}

func TestOpenTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		wg.Go(func() {
			q, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
			if err == nil {
				err = errors.Join(q.Enqueue(t.Context(), job("one")), q.Close(t.Context()))
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Errorf("Open by eight at once: %v", err)
		}
	}
}

func TestClaims(t *testing.T) {
	q := open(t, t.TempDir(), sqlite.Options{})
	normal := open(t, t.TempDir(), sqlite.Options{Synchronous: "normal"})
	if got := normal.Claims().Durability; got != queue.DurabilityProcess {
		t.Errorf("durability with NORMAL: got %q, want %q", got, queue.DurabilityProcess)
	}
	c := q.Claims()
	if c.Settings["synchronous"] != "FULL" || !strings.HasPrefix(c.Version, "SQLite 3.") {
		t.Errorf("claims: got %+v", c)
	}
	c.Settings["synchronous"] = "changed"
	if got := q.Claims().Settings["synchronous"]; got != "FULL" {
		t.Errorf("a caller changed the claims to %q", got)
	}
}

func TestClaimsInMemory(t *testing.T) {
	const shm = "/dev/shm"
	if _, err := os.Stat(shm); err != nil || runtime.GOOS != "linux" {
		t.Skipf("needs %s of Linux", shm)
	}
	dir, err := os.MkdirTemp(shm, "floodproof") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		t.Skipf("needs a writable %s: %v", shm, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if got := open(t, dir, sqlite.Options{}).Claims().Durability; got != queue.DurabilityProcess {
		t.Errorf("durability in memory: got %q, want %q", got, queue.DurabilityProcess)
	}
}

// TestStatementsUseTheirIndex fails when a statement walks over a table, which shows only in a queue that is full.
func TestStatementsUseTheirIndex(t *testing.T) {
	q := open(t, t.TempDir(), sqlite.Options{})
	enqueue(t, q, "a", "b", "c")
	for name, statement := range sqlite.Statements() {
		lines, err := q.Plan(statement)
		if err != nil {
			t.Fatalf("plan of %s: %v", name, err)
		}
		for _, line := range lines {
			scan := strings.Contains(line, "SCAN") && !strings.Contains(line, "CONSTANT ROW") && line != "SCAN l" // there are few lanes
			if scan || strings.Contains(line, "TEMP B-TREE") {
				t.Errorf("%s does not use an index:\n%s", name, strings.Join(lines, "\n"))
			}
		}
	}
	lines, err := q.Plan("SELECT id FROM jobs WHERE state < 2 AND at <= ? ORDER BY at LIMIT ?")
	if err != nil || !strings.Contains(strings.Join(lines, "\n"), "SCAN") {
		t.Errorf("a query without an index: got plan %q, error %v; this test cannot fail", lines, err)
	}
}

// TestLimitsAreNotPlanned: a limit that is a plain parameter has the statement planned anew each time.
func TestLimitsAreNotPlanned(t *testing.T) {
	for name, statement := range sqlite.Statements() {
		if strings.Contains(statement, "LIMIT ?") || strings.Contains(statement, "OFFSET ?") {
			t.Errorf("%s: write +? for the limit in %s", name, statement)
		}
	}
}

// TestCountsStayTrue does anything in any order and compares what is counted along with what is there.
func TestCountsStayTrue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	clock := func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	q := open(t, t.TempDir(), sqlite.Options{Lease: time.Minute, Now: clock})
	var leases []queue.Lease
	for i := range 600 {
		switch random.IntN(6) {
		case 0, 1:
			j := job(fmt.Sprint("e", random.IntN(200)))
			if random.IntN(10) == 0 {
				j.DeadOnArrival = "malformed"
			}
			if err := q.Enqueue(t.Context(), j, job(fmt.Sprint("f", i))); err != nil {
				t.Fatalf("Enqueue: %v", err)
			}
		case 2:
			d, err := q.Depth(t.Context())
			if err != nil {
				t.Fatalf("Depth: %v", err)
			}
			if d.Oldest > 0 {
				leases = append(leases, receive(t, q, 1+random.IntN(5))...)
			}
		case 3, 4:
			if len(leases) > 0 {
				n := random.IntN(len(leases))
				outcome := []queue.Outcome{queue.Done(), queue.Retry(time.Duration(random.IntN(90))*time.Second, "r"), queue.Dead("d")}[random.IntN(3)]
				err := q.Settle(t.Context(), leases[n], outcome)
				if err != nil && !errors.Is(err, queue.ErrLeaseLost) {
					t.Fatalf("Settle: %v", err)
				}
			}
		case 5:
			mu.Lock()
			now = now.Add(time.Duration(random.IntN(40)) * time.Second)
			mu.Unlock()
		}
	}
	got, err := q.Depth(t.Context())
	if err != nil {
		t.Fatalf("Depth: %v", err)
	}
	if err := q.CatchUp(t.Context()); err != nil {
		t.Fatalf("CatchUp: %v", err)
	}
	waiting, leased, dead, done, err := q.Recount()
	if err != nil {
		t.Fatalf("Recount: %v", err)
	}
	if got.Waiting+got.Leased != waiting+leased || got.Dead != dead || got.Done != done {
		t.Errorf("Depth: got %+v, the file has %d waiting, %d leased, %d dead, %d done", got, waiting, leased, dead, done)
	}
	if min(waiting, dead, done) == 0 {
		t.Errorf("the test did not reach all states: %d waiting, %d leased, %d dead, %d done", waiting, leased, dead, done)
	}
}

func TestEventHistory(t *testing.T) {
	q := open(t, t.TempDir(), sqlite.Options{})
	want := job("storied")
	want.ReceivedAt = time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	if err := q.Enqueue(t.Context(), want); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	event := func() queue.Event {
		t.Helper()
		e, err := q.Event(t.Context(), "stripe", "storied")
		if err != nil {
			t.Fatalf("Event: %v", err)
		}
		return e
	}
	check := func(state queue.State, reasons ...string) {
		t.Helper()
		e := event()
		var got []string
		for _, a := range e.Attempts {
			got = append(got, fmt.Sprintf("%d %s", a.Number, a.Reason))
		}
		if diff := cmp.Diff(want, e.Job); diff != "" || e.State != state || e.Since.IsZero() {
			t.Errorf("event: got state %s since %v, want %s; job (-want +got):\n%s", e.State, e.Since, state, diff)
		}
		if diff := cmp.Diff(reasons, got); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	}
	check(queue.StatePending)
	lease := receive(t, q, 1)[0]
	check(queue.StateProcessing)
	settle(t, q, lease, queue.Retry(0, strings.Repeat("ü", 5000)))
	long := "1 " + strings.Repeat("ü", 2048) + "..."
	check(queue.StatePending, long)
	settle(t, q, receive(t, q, 1)[0], queue.Dead("hopeless"))
	check(queue.StateFailed, long, "2 hopeless")
	if err := q.Redrive(t.Context(), "stripe", "storied"); err != nil {
		t.Fatalf("Redrive: %v", err)
	}
	check(queue.StatePending, long, "2 hopeless")
	if err := q.Redrive(t.Context(), "stripe", "storied"); err == nil {
		t.Errorf("Redrive of a job that is not dead: got no error")
	}
	lease = receive(t, q, 1)[0]
	if e := event(); lease.Attempt != 1 || e.Attempt != 1 || e.Leases != 3 {
		t.Errorf("attempt after Redrive: got %d, and %d of %d leases, want 1 of 3", lease.Attempt, e.Attempt, e.Leases)
	}
	settle(t, q, lease, queue.Done())
	check(queue.StateDone, long, "2 hopeless")
	if _, err := q.Event(t.Context(), "stripe", "never sent"); !errors.Is(err, queue.ErrUnknownEvent) {
		t.Errorf("Event that was never sent: got error %v, want %v", err, queue.ErrUnknownEvent)
	}
}

// FuzzRoundTrip stores any bytes in every text and in the payload, and wants them back.
func FuzzRoundTrip(f *testing.F) {
	f.Add("stripe", "evt_1", []byte(`{"id":"evt_1"}`))
	f.Add("a\x00b", "\xff\xfe", []byte{})
	f.Add("'; DROP TABLE jobs; --", "?1", bytes.Repeat([]byte("compressible "), 1000))
	q := open(f, f.TempDir(), sqlite.Options{})
	var n atomic.Int64 // makes each event a new one
	f.Fuzz(func(t *testing.T, provider, id string, payload []byte) {
		want := queue.Job{Provider: "p" + provider, EventID: id + fmt.Sprint(n.Add(1)), DeliveryID: id, Type: provider, Resource: id,
			Payload: payload, ReceivedAt: time.UnixMicro(1).UTC()}
		if err := q.Enqueue(t.Context(), want); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		got, err := q.Event(t.Context(), want.Provider, want.EventID)
		if err != nil {
			t.Fatalf("Event: %v", err)
		}
		if diff := cmp.Diff(want, got.Job, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("job (-want +got):\n%s", diff)
		}
	})
}
