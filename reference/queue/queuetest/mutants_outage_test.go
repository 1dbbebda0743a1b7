package queuetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/queuetest"
	"floodproof/reference/queue/sqlite"
)

// brittle is a server that can be killed: a good queue behind a memory, of which nothing is left then.
type brittle struct {
	// lateJobs and lateEnds say what is acknowledged while it is in the memory alone; forgetsIDs, that it knows events by its memory; staysDown, that handles do not heal.
	lateJobs, lateEnds, forgetsIDs, staysDown bool

	mu    sync.Mutex
	down  bool
	kills int
	jobs  []string        // acknowledged, and in the memory alone
	lost  map[string]bool // those that were there when it was killed
	ends  []queue.Lease   // settlements that are in the memory alone
}

// inMemory is how many jobs, and how many settlements, a late server has not kept yet.
const inMemory = 10

func (b *brittle) Kill(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.jobs {
		b.lost[id] = true
	}
	b.down, b.jobs, b.ends = true, nil, nil
	b.kills++
	return nil
}

func (b *brittle) Restart(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = false
	return nil
}

var errDown = errors.New("the server is away")

// client is a handle on a brittle server.
type client struct {
	*sqlite.Queue
	*brittle
}

func (c client) answers() error {
	if c.down || c.staysDown && c.kills > 0 {
		return errDown
	}
	return nil
}

func (c client) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.answers(); err != nil {
		return err
	}
	for i := range jobs {
		if c.forgetsIDs {
			jobs[i].Provider += strings.Repeat("'", c.kills)
		}
		if c.lateJobs {
			c.jobs = append(c.jobs, jobs[i].EventID)
		}
	}
	c.jobs = c.jobs[max(0, len(c.jobs)-inMemory):]
	return c.Queue.Enqueue(ctx, jobs...)
}

// Receive leases what is left. What was lost is settled, so that nobody ever sees it.
func (c client) Receive(ctx context.Context, lane string, limit int) ([]queue.Lease, error) {
	c.mu.Lock()
	err := c.answers()
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	leases, err := c.Queue.Receive(ctx, lane, limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	leases = slices.DeleteFunc(leases, func(l queue.Lease) bool {
		if c.lost[l.EventID] {
			err = errors.Join(err, c.Queue.Settle(ctx, l, queue.Done()))
		}
		return c.lost[l.EventID]
	})
	return leases, err
}

// Settle keeps all but the newest settlements of a server that is late with them.
func (c client) Settle(ctx context.Context, lease queue.Lease, o queue.Outcome) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.answers(); err != nil {
		return err
	}
	if !c.lateEnds {
		return c.Queue.Settle(ctx, lease, o)
	}
	lease, err := c.Extend(ctx, lease, time.Second)
	if err != nil {
		return err
	}
	c.ends = append(c.ends, lease)
	return c.keep(ctx, inMemory)
}

// keep keeps the settlements but for so many.
func (c client) keep(ctx context.Context, but int) (err error) {
	for ; len(c.ends) > but; c.ends = c.ends[1:] {
		err = errors.Join(err, c.Queue.Settle(ctx, c.ends[0], queue.Done()))
	}
	return err
}

// Depth is asked when nobody kills the server any more.
func (c client) Depth(ctx context.Context) (queue.Depth, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.keep(ctx, 0); err != nil {
		return queue.Depth{}, err
	}
	return c.Queue.Depth(ctx)
}

// TestOutagesMutants kills servers that break their word, each in one way, and a whole one.
func TestOutagesMutants(t *testing.T) {
	for _, tt := range []struct {
		name   string
		server *brittle
		want   string
	}{
		{"whole", &brittle{}, ""},
		{"loses what was acknowledged", &brittle{lateJobs: true}, "was acknowledged and never came"},
		{"loses what was settled", &brittle{lateEnds: true}, "was settled and came again"},
		{"loses what it knew", &brittle{forgetsIDs: true}, "was settled and came again"},
		{"does not heal", &brittle{staysDown: true}, "nothing moves any more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.server.lost = make(map[string]bool)
			dir := t.TempDir()
			failures := queuetest.OutageFailures(t, tt.server.Kill, tt.server.Restart, func(t testing.TB, lease time.Duration) queue.Queue {
				q, err := sqlite.Open(t.Context(), dir, sqlite.Options{Lease: lease})
				if err != nil {
					t.Fatalf("Open: %v", err)
				}
				t.Cleanup(func() {
					if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
						t.Errorf("Close: %v", err)
					}
				})
				return client{q, tt.server}
			})
			all := strings.Join(failures, "\n")
			if tt.want == "" && all != "" || !strings.Contains(all, tt.want) {
				t.Errorf("a server that is %q: got the failures\n%s\nwant some with %q", tt.name, all, tt.want)
			}
			if len(failures) > 0 {
				t.Logf("caught: %s", failures[0])
			}
		})
	}
}
