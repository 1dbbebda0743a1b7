package queuetest_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/sqlite"
)

// brokenChild, when set, makes the process that is killed use a queue that forgets.
const brokenChild = "FLOODPROOF_QUEUETEST_FORGET"

func TestMain(m *testing.M) {
	queuetest.Child(func(ctx context.Context, dir string, lease time.Duration) (queue.Queue, error) {
		q, err := sqlite.Open(ctx, dir, sqlite.Options{Lease: lease})
		if err == nil && os.Getenv(brokenChild) != "" {
			return &forgets{Queue: q}, nil
		}
		return q, err
	})
	goleak.VerifyTestMain(m)
}

// opener opens sqlite queues, through a wrapper that breaks them. State that a mutant keeps for all handles of a queue is made by breaker.
func opener(breaker func() func(*sqlite.Queue) queue.Queue) func(testing.TB) queuetest.Opened {
	return func(t testing.TB) queuetest.Opened {
		dir := t.TempDir()
		first, err := sqlite.Open(t.Context(), dir, sqlite.Options{MaxPayload: 1 << 20})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		claims := first.Claims()
		if err := first.Close(t.Context()); err != nil {
			t.Fatalf("Close: %v", err)
		}
		broken := breaker()
		return queuetest.Opened{
			Claims:  claims,
			Address: dir,
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				q, err := sqlite.Open(ctx, dir, sqlite.Options{Lease: lease, MaxPayload: 1 << 20})
				if err != nil {
					return nil, err
				}
				return broken(q), nil
			},
			Retain: func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error) {
				// Its shortest retention is a minute: by a clock that runs that much faster.
				faster, begin := sqlite.MinRetention/retention, time.Now()
				now := func() time.Time { return begin.Add(time.Since(begin) * faster) }
				q, err := sqlite.Open(ctx, dir, sqlite.Options{Lease: lease * faster, MaxPayload: 1 << 20, Retention: sqlite.MinRetention, Now: now})
				if err != nil {
					return nil, err
				}
				return broken(q), nil
			},
		}
	}
}

// each breaks every handle in the same way, on its own.
func each(broken func(*sqlite.Queue) queue.Queue) func() func(*sqlite.Queue) queue.Queue {
	return func() func(*sqlite.Queue) queue.Queue { return broken }
}

func whole(q *sqlite.Queue) queue.Queue { return q }

// TestMutants breaks a good queue in one way at a time. The check that is there for it must fail, and must pass on the queue that is whole.
func TestMutants(t *testing.T) {
	for _, tt := range mutants() {
		t.Run(tt.check+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			failures, skipped := queuetest.Failures(t, tt.check, opener(tt.breaker))
			if skipped || len(failures) == 0 {
				t.Fatalf("a queue that %s passed the check %s (skipped: %v)", tt.name, tt.check, skipped)
			}
			t.Logf("caught: %s", failures[0])
			// On a machine that is busy with other things a check may lose its patience first.
			wants := append(strings.Split(tt.want, " or "), context.DeadlineExceeded.Error())
			if !slices.ContainsFunc(wants, func(want string) bool { return strings.Contains(failures[0], want) }) {
				t.Errorf("caught by the wrong assertion: got %q, want it to contain %q", failures[0], tt.want)
			}
		})
	}
}

// TestForgetfulProcessIsCaught is the mutant of the check that kills a process. It is apart, because the environment belongs to the whole test binary.
func TestForgetfulProcessIsCaught(t *testing.T) {
	t.Setenv(brokenChild, "1")
	failures, skipped := queuetest.Failures(t, "killed-process", opener(each(whole)))
	if skipped || len(failures) == 0 {
		t.Fatalf("a process that forgets jobs passed (skipped: %v)", skipped)
	}
	t.Logf("caught: %s", failures[0])
}

// TestEmptyClaimsAreCaught is the mutant of the check of the claims.
func TestEmptyClaimsAreCaught(t *testing.T) {
	open := opener(each(whole))
	failures, _ := queuetest.Failures(t, "claims", func(t testing.TB) queuetest.Opened {
		opened := open(t)
		opened.Claims = queue.Claims{Durability: "certainly"}
		return opened
	})
	if got, want := len(failures), 3; got != want { // durability, payload, version
		t.Errorf("empty claims: got %d failures %q, want %d", got, failures, want)
	}
}

// TestEveryCheckHasAMutant keeps the list complete.
func TestEveryCheckHasAMutant(t *testing.T) {
	caught := map[string]bool{"killed-process": true, "claims": true} // above
	for _, m := range mutants() {
		caught[m.check] = true
	}
	for _, name := range queuetest.CheckNames() {
		if !caught[name] {
			t.Errorf("the check %s has no mutant: nobody knows whether it can fail", name)
		}
	}
}

// TestWhole runs the suite on the queue that the mutants break, unbroken, through the same wrapping.
func TestWhole(t *testing.T) {
	queuetest.Run(t, opener(each(whole)))
}
