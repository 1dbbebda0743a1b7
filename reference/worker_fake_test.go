package reference

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"floodproof/reference/queue"
)

// leaseQueue is a queue in memory with a lease length, for worker tests under a fake clock.
type leaseQueue struct {
	length time.Duration
	// onReceive and onSettle may fail a call. Nil: none fails.
	onReceive func() error
	onSettle  func(queue.Lease) error

	mu      sync.Mutex
	jobs    map[int64]*leasedJob
	changed chan struct{} // Closed and replaced when a job became due sooner than known.
	settled []settlement
	asked   []int // What each Receive asked for.
}

type leasedJob struct {
	lease queue.Lease
	due   time.Time
	ended bool
}

// settlement is a Settle that counted.
type settlement struct {
	id      int64
	attempt int
	at      time.Duration
	verb    string
	after   time.Duration
	reason  string
}

func newLeaseQueue(n int, length time.Duration) *leaseQueue {
	q := &leaseQueue{length: length, jobs: map[int64]*leasedJob{}, changed: make(chan struct{})}
	for id := int64(1); id <= int64(n); id++ {
		q.jobs[id] = &leasedJob{due: time.Now(), lease: queue.Lease{ID: id, Job: queue.Job{Provider: "stripe", EventID: fmt.Sprintf("evt_%d", id), ReceivedAt: time.Now()}}}
	}
	return q
}

func (q *leaseQueue) Enqueue(context.Context, ...queue.Job) error { return nil }
func (q *leaseQueue) Close(context.Context) error                 { return nil }

func (q *leaseQueue) Receive(ctx context.Context, _ string, most int) ([]queue.Lease, error) {
	q.mu.Lock()
	q.asked = append(q.asked, most)
	q.mu.Unlock()
	for {
		if q.onReceive != nil {
			if err := q.onReceive(); err != nil {
				return nil, err
			}
		}
		leases, wait, changed := q.due(most)
		if len(leases) > 0 {
			return leases, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
		case <-changed:
		}
		timer.Stop()
	}
}

// due leases what is due, oldest due first, and says how long until the next.
func (q *leaseQueue) due(most int) (leases []queue.Lease, wait time.Duration, changed <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, wait := time.Now(), time.Hour
	ids := make([]int64, 0, len(q.jobs))
	for id := range q.jobs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int64) int {
		if c := q.jobs[a].due.Compare(q.jobs[b].due); c != 0 {
			return c
		}
		return int(a - b)
	})
	for _, id := range ids {
		j := q.jobs[id]
		if left := j.due.Sub(now); j.ended || left > 0 {
			if !j.ended {
				wait = min(wait, left)
			}
			continue
		}
		if len(leases) < most {
			j.lease.Attempt++
			j.lease.Token++
			j.lease.Deadline = now.Add(q.length)
			j.due = j.lease.Deadline
			leases = append(leases, j.lease)
		}
	}
	return leases, wait, q.changed
}

// held returns the job of a lease that is still good. The caller holds the lock.
func (q *leaseQueue) held(l queue.Lease) (*leasedJob, error) {
	j := q.jobs[l.ID]
	if j.ended || j.lease.Token != l.Token || !time.Now().Before(j.lease.Deadline) {
		return nil, queue.ErrLeaseLost
	}
	return j, nil
}

func (q *leaseQueue) Settle(_ context.Context, l queue.Lease, o queue.Outcome) error {
	if q.onSettle != nil {
		if err := q.onSettle(l); err != nil {
			return err
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	j, err := q.held(l)
	if err != nil {
		return err
	}
	s := settlement{id: l.ID, attempt: l.Attempt, at: time.Since(j.lease.ReceivedAt), verb: "done", after: o.After(), reason: o.Reason()}
	j.lease.Token++ // The lease is over.
	if o.IsRetry() {
		s.verb, j.due = "retry", time.Now().Add(o.After())
		close(q.changed)
		q.changed = make(chan struct{})
	} else {
		j.ended = true
	}
	if o.IsDead() {
		s.verb = "dead"
	}
	q.settled = append(q.settled, s)
	return nil
}

func (q *leaseQueue) settlements() []settlement {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.settled)
}

// take leases one job by hand, as a second worker would.
func (q *leaseQueue) take(t *testing.T) queue.Lease {
	t.Helper()
	leases, _, _ := q.due(1)
	if len(leases) != 1 {
		t.Fatalf("got %d leases, want 1", len(leases))
	}
	return leases[0]
}

// extendingQueue can prolong.
type extendingQueue struct {
	*leaseQueue
	onExtend func() error
	extended []time.Duration // When, since the start of the test.
	start    time.Time
}

func (q *extendingQueue) Extend(_ context.Context, l queue.Lease, d time.Duration) (queue.Lease, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.extended = append(q.extended, time.Since(q.start))
	if q.onExtend != nil {
		if err := q.onExtend(); err != nil {
			return l, err
		}
	}
	j, err := q.held(l)
	if err != nil {
		return l, err
	}
	j.lease.Deadline = time.Now().Add(d)
	j.due = j.lease.Deadline
	return j.lease, nil
}

// running is a worker at work in a bubble.
type running struct {
	worker *Worker
	stop   context.CancelFunc
	result chan error
}

// runWorker starts a worker. It is stopped, and its error checked, by finish.
func runWorker(t *testing.T, w *Worker) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &running{worker: w, stop: stop, result: make(chan error, 1)}
	go func() { r.result <- w.Run(ctx) }()
	return r
}

func (r *running) finish(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.result; err != nil {
		t.Errorf("Run: %v, want nil", err)
	}
}

// after lets fake time pass and everything that it wakes come to rest.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
