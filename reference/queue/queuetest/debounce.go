package queuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// window is a quiet window that a busy machine can tell from none, and longest a wait that ends long before patience does.
const (
	window  = 700 * time.Millisecond
	longest = 4 * window
)

// debouncing opens a handle of a backend that has it.
func (s *suite) debouncing(open func() queue.Queue) queue.Queue {
	s.Helper()
	if !s.opened.Claims.Debounce {
		s.Skip("the backend does not claim to debounce")
	}
	return open()
}

// update is a version of a resource.
func update(resource string, version int) queue.Job {
	j := job(fmt.Sprintf("%s@%d", resource, version))
	j.Resource, j.Version = resource, int64(version)
	j.Debounce = queue.Debounce{Quiet: window, MaxWait: longest}
	return j
}

// updateTwice is the same version of a resource under another event id.
func updateAgain(resource string, version int, suffix string) queue.Job {
	j := update(resource, version)
	j.EventID += suffix
	return j
}

// next receives one job, and settles nothing.
func (s *suite) next(q queue.Queue, want string) queue.Lease {
	s.Helper()
	lease := s.receive(q, 1)[0]
	if lease.EventID != want {
		s.Fatalf("received %s, want %s", lease.EventID, want)
	}
	return lease
}

// debounceNewest: of updates that follow each other closely the newest is worked on, once, after the quiet window, and with its own payload.
func debounceNewest(s *suite) {
	q := s.debouncing(s.open)
	s.enqueue(q, update("order", 1))
	// Before Enqueue and not after it: the window begins with the backend's own write, and the answer may be long on its way.
	begin := time.Now()
	s.enqueue(q, update("order", 2), update("order", 3))
	lease := s.next(q, "order@3")
	if waited := time.Since(begin); waited < window-50*time.Millisecond {
		s.Errorf("received after %v, before the quiet window of %v was over", waited, window)
	}
	s.wantJob(lease.Job, update("order", 3))
	s.settle(q, lease, queue.Done())
	s.receiveNone(q, 2*window)
	s.wantDepth(q, queue.Depth{Done: 3})
}

// wantDepth compares the counts of a backend that has them.
func (s *suite) wantDepth(q queue.Queue, want queue.Depth) {
	s.Helper()
	depther, ok := q.(queue.Depther)
	if !ok {
		return
	}
	got, err := depther.Depth(s.ctx)
	if err != nil {
		s.Fatalf("Depth: %v", err)
	}
	got.Oldest, got.Lanes = 0, nil
	if got.Waiting != want.Waiting || got.Leased != want.Leased || got.Dead != want.Dead || got.Done != want.Done {
		s.Errorf("Depth: got %+v, want %+v", got, want)
	}
}

// debounceLateVersion: an old version that comes late never wins, neither in the window nor after it.
func debounceLateVersion(s *suite) {
	q := s.debouncing(s.open)
	s.enqueue(q, update("order", 2))
	s.enqueue(q, update("order", 1))
	s.settle(q, s.next(q, "order@2"), queue.Done())
	s.enqueue(q, updateAgain("order", 1, " late"))
	s.receiveNone(q, 2*window)
	s.enqueue(q, updateAgain("order", 2, " again"))
	s.settle(q, s.next(q, "order@2 again"), queue.Done())
}

// debounceLongestWait: updates that never stop are worked on all the same.
func debounceLongestWait(s *suite) {
	q := s.debouncing(s.open)
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	begin := time.Now()
	var wg sync.WaitGroup
	defer wg.Wait()
	stop := make(chan struct{})
	defer close(stop)
	s.enqueue(q, update("order", 1))
	wg.Go(func() {
		tick := time.NewTicker(window / 4)
		defer tick.Stop()
		for version := 2; ; version++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				if q.Enqueue(ctx, update("order", version)) != nil {
					return
				}
			}
		}
	})
	leases, err := q.Receive(ctx, "", 1)
	if err != nil {
		s.Fatalf("Receive while updates go on: %v; a window must not stay open for ever", err)
	}
	if waited := time.Since(begin); waited < window {
		s.Errorf("received %s after %v, while updates came more often than every %v", leases[0].EventID, waited, window)
	}
	s.settle(q, leases[0], queue.Done())
}

// debounceWhileRunning: an update that comes while an older one is worked on is not lost, not worked on beside it, and waits for its own window.
func debounceWhileRunning(s *suite) {
	q := s.debouncing(s.open)
	other := s.open()
	s.enqueue(q, update("order", 1))
	first := s.next(q, "order@1")
	s.enqueue(other, update("order", 2))
	s.receiveNone(other, 3*window)
	s.settle(q, first, queue.Done())
	s.settle(other, s.next(other, "order@2"), queue.Done())
	s.receiveNone(q, window)
}

// debounceRetryGivesWay: what is to be tried again gives way to a newer version, whenever that came.
func debounceRetryGivesWay(s *suite) {
	q := s.debouncing(s.open)
	s.enqueue(q, update("order", 1))
	lease := s.next(q, "order@1")
	s.enqueue(q, update("order", 2))
	s.settle(q, lease, queue.Retry(0, "busy"))
	lease = s.next(q, "order@2")
	s.settle(q, lease, queue.Retry(time.Hour, "busy"))
	s.enqueue(q, update("order", 3))
	s.settle(q, s.next(q, "order@3"), queue.Done())
	s.receiveNone(q, 2*window)
	s.wantDepth(q, queue.Depth{Done: 3})
}

// debounceLapseGivesWay: a worker that vanished with an old version does not bring that back after a newer one, and its late answer does not count.
func debounceLapseGivesWay(s *suite) {
	short := s.debouncing(s.openShort)
	long := s.open()
	s.enqueue(short, update("order", 1))
	zombie := s.next(short, "order@1")
	s.enqueue(short, update("order", 2))
	lease := s.next(long, "order@2")
	s.wantLost("Settle of the old version after its lease lapsed", s.trySettle(short, zombie, queue.Done()))
	s.settle(long, lease, queue.Done())
	s.receiveNone(long, 2*window)

	s.enqueue(short, update("cart", 1))
	s.next(short, "cart@1")
	again := s.next(long, "cart@1") // nothing newer came: it is done after all
	s.settle(long, again, queue.Done())
}

// debounceEdges: the first at once, or the first and the last.
func debounceEdges(s *suite) {
	q := s.debouncing(s.open)
	edge := func(e queue.Edge, version int) queue.Job {
		j := update(fmt.Sprint("edge-", e), version)
		j.Debounce = queue.Debounce{Quiet: 2 * time.Second, MaxWait: 4 * time.Second, Edge: e}
		return j
	}
	for _, e := range []queue.Edge{queue.Leading, queue.Both} {
		begin := time.Now()
		s.enqueue(q, edge(e, 1))
		s.settle(q, s.next(q, edge(e, 1).EventID), queue.Done())
		if waited := time.Since(begin); waited > 2*time.Second {
			s.Errorf("the first update of a leading edge came after %v", waited)
		}
	}
	for _, e := range []queue.Edge{queue.Leading, queue.Both} {
		s.enqueue(q, edge(e, 2), edge(e, 3))
	}
	s.settle(q, s.next(q, edge(queue.Both, 3).EventID), queue.Done())
	s.receiveNone(q, window)
}

// debounceDuplicate: an event that is known changes nothing, above all not when its row is due.
func debounceDuplicate(s *suite) {
	q := s.debouncing(s.open)
	s.enqueue(q, update("order", 1))
	s.settle(q, s.next(q, "order@1"), queue.Done())
	s.enqueue(q, update("order", 1))
	s.receiveNone(q, 2*window)
	bad := update("order", 2)
	bad.Debounce.MaxWait = bad.Debounce.Quiet - 1
	if err := q.Enqueue(s.ctx, bad); err == nil {
		s.Errorf("Enqueue of a job whose longest wait is less than its window: got no error")
	}
	bad = update("", 2)
	if err := q.Enqueue(s.ctx, bad); err == nil {
		s.Errorf("Enqueue of a debounced job without a resource: got no error")
	}
}

// debounceMany: many resources that are due in the same moment all come, each once, the newest of each.
func debounceMany(s *suite) {
	q := s.debouncing(s.open)
	const resources = 400
	for version := 1; version <= 2; version++ {
		var batch []queue.Job
		for i := range resources {
			j := update(fmt.Sprintf("resource-%03d", i), version)
			j.Debounce = queue.Debounce{Quiet: 4 * time.Second, MaxWait: 20 * time.Second} // both batches must come within it, on a busy machine too
			batch = append(batch, j)
		}
		s.enqueue(q, batch...)
	}
	got := make(map[string]int)
	for range resources {
		lease := s.receive(q, 1)[0]
		got[lease.EventID]++
		s.settle(q, lease, queue.Done())
	}
	for i := range resources {
		if id := fmt.Sprintf("resource-%03d@2", i); got[id] != 1 {
			s.Fatalf("%s came %d times, want once", id, got[id])
		}
	}
	s.receiveNone(q, window)
}

// debounceResourcesApart: one resource's work does not hold up another's, and the same name of another provider is another resource.
func debounceResourcesApart(s *suite) {
	q := s.debouncing(s.open)
	other := update("order", 1)
	other.Provider = "woocommerce"
	s.enqueue(q, update("order", 1), other, update("cart", 1))
	seen := make(map[string]bool)
	for _, lease := range s.receive(q, 3) { // all of them leased at once
		seen[lease.Provider+" "+lease.Resource] = true
	}
	if len(seen) != 3 {
		s.Errorf("leased together: %v, want three resources", seen)
	}
	ctx, cancel := context.WithTimeout(s.ctx, quiet)
	defer cancel()
	if _, err := q.Receive(ctx, "", 1); !errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("Receive with everything leased: got error %v, want that of its context", err)
	}
}
