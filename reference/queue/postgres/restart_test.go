package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/postgres"
	"floodproof/reference/queue/queuetest"
)

// pause waits a moment before something is tried again.
func pause(ctx context.Context) {
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
	}
}

// TestKilledServer: nothing is lost or doubled by a server that is killed under load: its first process alone, whose death the others notice, or all of them at once.
func TestKilledServer(t *testing.T) {
	s := private(t, nil)
	kills := 0
	queuetest.Outages(t, queuetest.Outage{
		Open: func(t *testing.T, lease time.Duration) queue.Queue {
			return open(t, postgres.Options{URL: s.Address(), Lease: lease})
		},
		Kill: func(ctx context.Context) error {
			if kills++; kills == 2 {
				crash(t, s)
			}
			return s.Kill(ctx)
		},
		Restart: s.Restart,
	})
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
