package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
)

// update is a version of a resource that is due after a quiet while.
func update(resource string, version int64, quiet time.Duration) queue.Job {
	j := job(fmt.Sprintf("%s@%d", resource, version))
	j.Resource, j.Version = resource, version
	j.Debounce = queue.Debounce{Quiet: quiet, MaxWait: 4 * quiet}
	return j
}

const soon = 20 * time.Millisecond

func enqueueJobs(t testing.TB, q *nats.Queue, jobs ...queue.Job) {
	t.Helper()
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
}

// next receives one job of a lane.
func next(t testing.TB, q *nats.Queue, lane, want string) queue.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	leases, err := q.Receive(ctx, lane, 1)
	if err != nil {
		t.Fatalf("Receive: %v", err)
	}
	if leases[0].EventID != want {
		t.Fatalf("received %s, want %s", leases[0].EventID, want)
	}
	return leases[0]
}

// TestDebounceLargeVersions: versions are whole numbers of 64 bits, however large, and with a sign.
func TestDebounceLargeVersions(t *testing.T) {
	t.Parallel()
	q := open(t, nats.Options{})
	for _, tt := range []struct {
		name       string
		newer, old int64
	}{
		{"nanoseconds", 1_790_000_000_000_000_001, 1_790_000_000_000_000_000},
		{"largest", math.MaxInt64, math.MaxInt64 - 1},
		{"sign", 0, -1},
		{"smallest", math.MinInt64 + 1, math.MinInt64},
	} {
		newer := update(tt.name, tt.newer, soon)
		enqueueJobs(t, q, newer, update(tt.name, tt.old, soon))
		settle(t, q, next(t, q, "", newer.EventID), queue.Done())
	}
	receiveNone(t, q)
}

// TestDebounceAcrossLanes: a resource is one, whatever the lane. An update waits for one that is leased in another lane, however long that is extended, and takes its place when that
// lapses where nobody looks.
func TestDebounceAcrossLanes(t *testing.T) {
	t.Parallel()
	q := open(t, nats.Options{Lease: time.Second})
	enqueueJobs(t, q, update("order", 1, soon))
	first, err := q.Extend(t.Context(), next(t, q, "", "order@1"), 2*time.Second)
	if err != nil {
		t.Fatalf("Extend: %v", err)
	}
	second := update("order", 2, soon)
	second.Lane = "other"
	enqueueJobs(t, q, second)
	lease := next(t, q, "other", "order@2")
	if early := time.Until(first.Deadline); early > time.Millisecond {
		t.Errorf("received %v before the lease in the other lane was over", early)
	}
	if d, err := q.Depth(t.Context()); err != nil || d.Waiting != 0 || d.Leased != 1 || d.Done != 1 {
		t.Errorf("Depth: got %+v, error %v; want one leased and one done", d, err)
	}
	settle(t, q, lease, queue.Done())

	enqueueJobs(t, q, update("order", 3, soon))
	lease = next(t, q, "", "order@3")
	fourth := update("order", 4, soon)
	fourth.Lane = "other"
	enqueueJobs(t, q, fourth)
	ctx, cancel := context.WithTimeout(t.Context(), quiet)
	defer cancel()
	if leases, err := q.Receive(ctx, "other", 1); err == nil {
		t.Fatalf("received %s while %s is leased", leases[0].EventID, lease.EventID)
	}
	settle(t, q, lease, queue.Retry(0, "it gives way"))
	settle(t, q, next(t, q, "other", "order@4"), queue.Done())
}

// TestDebounceRedrive: a dead letter that a newer version followed stays one, whether it died at work or on arrival; the newest may be redriven.
func TestDebounceRedrive(t *testing.T) {
	t.Parallel()
	q := open(t, nats.Options{})
	malformed := update("order", 1, soon)
	malformed.EventID, malformed.DeadOnArrival = "malformed", "not JSON"
	enqueueJobs(t, q, malformed)
	enqueueJobs(t, q, update("order", 1, soon))
	settle(t, q, next(t, q, "", "order@1"), queue.Dead("hopeless"))
	enqueueJobs(t, q, update("order", 2, soon))
	lease := next(t, q, "", "order@2")
	for _, id := range []string{"order@1", "malformed"} {
		if err := q.Redrive(t.Context(), "stripe", id); !errors.Is(err, queue.ErrSuperseded) {
			t.Errorf("Redrive of %s: got error %v, want %v", id, err, queue.ErrSuperseded)
		}
	}
	settle(t, q, lease, queue.Dead("hopeless too"))
	if err := q.Redrive(t.Context(), "stripe", "order@2"); err != nil {
		t.Fatalf("Redrive of the newest: %v", err)
	}
	settle(t, q, next(t, q, "", "order@2"), queue.Done())
	receiveNone(t, q)
	if d, err := q.Depth(t.Context()); err != nil || d.Dead != 2 || d.Done != 1 || d.Waiting+d.Leased != 0 {
		t.Errorf("Depth: got %+v, error %v; want two dead and one done", d, err)
	}

	alone := update("cart", 7, soon)
	alone.DeadOnArrival = "malformed"
	enqueueJobs(t, q, alone)
	if err := q.Redrive(t.Context(), "stripe", "cart@7"); err != nil {
		t.Fatalf("Redrive of the only one: %v", err)
	}
	settle(t, q, next(t, q, "", "cart@7"), queue.Done())
}

// TestDebounceClockSkew: machines do not agree about the time. Windows are by the server's clock, whoever opens them and whoever waits for them.
func TestDebounceClockSkew(t *testing.T) {
	t.Parallel()
	const skew, window = 30 * time.Second, 500 * time.Millisecond
	name := namespace()
	ahead := open(t, nats.Options{Namespace: name, Now: func() time.Time { return time.Now().Add(skew) }})
	behind := open(t, nats.Options{Namespace: name, Now: func() time.Time { return time.Now().Add(-skew) }})
	for i, by := range []struct{ receiver, worker *nats.Queue }{{ahead, behind}, {behind, ahead}} {
		resource := fmt.Sprint("order-", i)
		enqueueJobs(t, by.worker, update(resource, 1, window))
		begin := time.Now()
		enqueueJobs(t, by.receiver, update(resource, 2, window))
		lease := next(t, by.worker, "", resource+"@2")
		if took := time.Since(begin); took < window-50*time.Millisecond || took > skew/2 {
			t.Errorf("received after %v, the window is %v", took, window)
		}
		settle(t, by.receiver, lease, queue.Done())
	}
}

// TestDebounceHotResource: many callers of several processes bring versions of one resource at the same moment. Each is stored, none is refused for the others, and the newest is worked
// on last.
func TestDebounceHotResource(t *testing.T) {
	t.Parallel()
	const handles, callers, each = 3, 16, 6
	name := namespace()
	var wg sync.WaitGroup
	var worker *nats.Queue
	for h := range handles {
		q := open(t, nats.Options{Namespace: name})
		worker = q
		for c := range callers {
			wg.Go(func() {
				for i := range each {
					version := int64(i*handles*callers + h*callers + c + 1)
					if err := q.Enqueue(t.Context(), update("hot", version, 100*time.Millisecond)); err != nil {
						t.Errorf("Enqueue of version %d: %v", version, err)
					}
				}
			})
		}
	}
	wg.Wait()
	const newest = handles * callers * each
	seen := int64(0)
	for seen < newest {
		lease := receive(t, worker, 10)[0]
		if lease.Version <= seen {
			t.Errorf("version %d came after %d", lease.Version, seen)
		}
		seen = lease.Version
		settle(t, worker, lease, queue.Done())
	}
	receiveNone(t, worker)
	if d, err := worker.Depth(t.Context()); err != nil || d.Done != newest || d.Waiting+d.Leased+d.Dead != 0 {
		t.Errorf("Depth: got %+v, error %v; want %d done and nothing else", d, err, newest)
	}
}

// TestReplacedAtTheMomentItFires: with the server's own message schedules a replacement that is stored while the one before it fires is purged together with that, acknowledged or not. So
// resources by the hundred are made due in the same moment, and each is replaced at some time from a little before that until well after. None may be lost. The stream must not even
// allow schedules.
func TestReplacedAtTheMomentItFires(t *testing.T) {
	const resources, groups, window = 800, 40, 2 * time.Second
	name := namespace()
	q, worker := open(t, nats.Options{Namespace: name}), open(t, nats.Options{Namespace: name})
	version := func(v int64, from, to int) (jobs []queue.Job) {
		for i := from; i < to; i++ {
			j := update(fmt.Sprint("r", i), v, window)
			j.Debounce.MaxWait = window // the replacement does not move the end
			jobs = append(jobs, j)
		}
		return jobs
	}
	done := make(map[string][]int64)
	finished := make(chan error, 1)
	go func() { finished <- workUntil(t.Context(), worker, done, 2, resources) }()
	enqueueJobs(t, q, version(1, 0, resources)...)
	fires := time.Now().Add(window)
	for g := range groups {
		pass(t, fires.Add(-20*time.Millisecond+time.Duration(g)*10*time.Millisecond))
		enqueueJobs(t, q, version(2, g*resources/groups, (g+1)*resources/groups)...)
	}
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	twice := 0
	for resource, versions := range done {
		if len(versions) > 2 || versions[len(versions)-1] != 2 {
			t.Errorf("%s: versions %v were done, want 2 as the last", resource, versions)
		}
		twice += len(versions) - 1
	}
	if twice == 0 {
		t.Errorf("every resource was replaced in time: the test shows little")
	}
	if d, err := q.Depth(t.Context()); err != nil || d.Done != 2*resources || d.Waiting+d.Leased+d.Dead != 0 {
		t.Errorf("Depth: got %+v, error %v; want %d done and nothing else", d, err, 2*resources)
	}
	var info struct {
		Config struct {
			Schedules bool `json:"allow_msg_schedules"`
		} `json:"config"`
	}
	if err := json.Unmarshal(request(t, connect(t, address(t)), "$JS.API.STREAM.INFO.FP_"+name, ""), &info); err != nil || info.Config.Schedules {
		t.Errorf("the stream allows message schedules (error %v)", err)
	}
	t.Logf("%d resources, of which %d had fired before they were replaced; none was lost", resources, twice)
}

// workUntil works until so many resources have a version done, and notes all versions that were.
func workUntil(ctx context.Context, q *nats.Queue, done map[string][]int64, version int64, resources int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for last := 0; last < resources; {
		leases, err := q.Receive(ctx, "", 64)
		if err != nil {
			return fmt.Errorf("receive with %d of %d resources at version %d: %w", last, resources, version, err)
		}
		errs := make(chan error, len(leases))
		for _, lease := range leases {
			go func() { errs <- q.Settle(ctx, lease, queue.Done()) }()
			done[lease.Resource] = append(done[lease.Resource], lease.Version)
			if lease.Version == version {
				last++
			}
		}
		for range leases {
			err = errors.Join(err, <-errs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// storm is what several handles do to some resources while their server dies, and what they know of it.
type storm struct {
	t  *testing.T
	mu sync.Mutex
	// acked is the highest version of each resource that was acknowledged, tried the highest that was sent, done the one that was settled as done last.
	acked, tried, done map[string]int64
	// out are the leases that are in force.
	out      map[string]queue.Lease
	leases   int
	outcomes [4]int
}

// send enqueues versions of resources until ctx ends; only this one sends them, so that they grow.
func (s *storm) send(ctx context.Context, q *nats.Queue, name string, random *rand.Rand) {
	for version := int64(1); ctx.Err() == nil; version++ {
		var jobs []queue.Job
		for range 1 + random.IntN(3) {
			j := update(fmt.Sprintf("%s-%d", name, random.IntN(6)), version, 40*time.Millisecond)
			j.EventID += fmt.Sprint(" #", len(jobs))
			jobs = append(jobs, j)
		}
		s.mu.Lock()
		for _, j := range jobs {
			s.tried[j.Resource] = version
		}
		s.mu.Unlock()
		one, stop := context.WithTimeout(ctx, time.Second)
		err := q.Enqueue(one, jobs...)
		stop()
		if err == nil {
			s.mu.Lock()
			for _, j := range jobs {
				s.acked[j.Resource] = version
			}
			s.mu.Unlock()
		}
		tick(ctx)
	}
}

// work receives and ends leases in all ways until ctx ends.
func (s *storm) work(ctx context.Context, q *nats.Queue, random *rand.Rand, kind func(*rand.Rand) int) {
	for ctx.Err() == nil {
		leases, err := q.Receive(ctx, "", 8)
		if err != nil {
			tick(ctx)
			continue
		}
		for _, lease := range leases {
			s.leased(lease)
			s.end(q, lease, kind(random))
		}
	}
}

func (s *storm) leased(lease queue.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leases++
	if other, ok := s.out[lease.Resource]; ok && time.Until(other.Deadline) > 5*time.Millisecond {
		s.t.Errorf("%s was leased while %s was, until %v later", lease.EventID, other.EventID, time.Until(other.Deadline))
	}
	if lease.Version < s.done[lease.Resource] {
		s.t.Errorf("%s was leased after version %d was done", lease.EventID, s.done[lease.Resource])
	}
	s.out[lease.Resource] = lease
}

func (s *storm) end(q *nats.Queue, lease queue.Lease, way int) {
	s.mu.Lock()
	s.outcomes[way]++
	s.mu.Unlock()
	outcome := queue.Done()
	switch way {
	case 1:
		outcome = queue.Retry(0, "busy")
	case 2:
		outcome = queue.Retry(30*time.Millisecond, "busy")
	case 3:
		return // the worker vanishes
	}
	s.mu.Lock()
	delete(s.out, lease.Resource) // who comes next may be faster than the answer
	s.mu.Unlock()
	err := q.Settle(s.t.Context(), lease, outcome)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && outcome.IsDone() {
		s.done[lease.Resource] = max(s.done[lease.Resource], lease.Version)
	}
}

// TestDebounceStorm: receivers and workers of four processes go on while their server is killed three times, and workers vanish with their leases. In the end the newest version of each
// resource that was acknowledged, or one that was sent after it, is the one that was done last; none was worked on beside another of its resource; and none waits for ever.
func TestDebounceStorm(t *testing.T) {
	t.Parallel()
	server := private(t, nil)
	s := &storm{t: t, acked: make(map[string]int64), tried: make(map[string]int64), done: make(map[string]int64), out: make(map[string]queue.Lease)}
	opts := nats.Options{URL: server.Address(), Namespace: "storm", Lease: time.Second}
	sending, stopSending := context.WithCancel(t.Context())
	working, stopWorking := context.WithCancel(t.Context())
	defer stopSending()
	defer stopWorking()
	var senders, workers sync.WaitGroup
	anyWay := func(random *rand.Rand) int { return max(0, random.IntN(12)-8) } // two in three are done
	for i := range 2 {
		q := open(t, opts)
		senders.Go(func() { s.send(sending, q, fmt.Sprint("sender", i), rand.New(rand.NewPCG(uint64(i), 1))) })
		w := open(t, opts)
		workers.Go(func() { s.work(working, w, rand.New(rand.NewPCG(uint64(i), 2)), anyWay) })
	}
	enough := func(n int) func() bool {
		from := s.count()
		return func() bool { return s.count() >= from+n }
	}
	for range 3 {
		waitFor(t, "enough leases", enough(30))
		if err := errors.Join(server.Kill(t.Context()), server.Restart(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "enough leases", enough(30))
	stopSending()
	senders.Wait()
	stopWorking()
	workers.Wait()
	s.finish(open(t, opts))
}

func (s *storm) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases
}

// finish works until nothing waits, and compares what was done with what was acknowledged.
func (s *storm) finish(q *nats.Queue) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		d, err := q.Depth(ctx)
		if err != nil {
			s.t.Fatalf("Depth: %v", err)
		}
		if d.Waiting+d.Leased == 0 {
			break
		}
		one, stop := context.WithTimeout(ctx, time.Second)
		leases, err := q.Receive(one, "", 8)
		stop()
		if err != nil && ctx.Err() != nil {
			s.t.Fatalf("Receive with %d waiting and %d leased: %v", d.Waiting, d.Leased, err)
		}
		for _, lease := range leases {
			s.leased(lease)
			s.end(q, lease, 0)
		}
	}
	for resource, acked := range s.acked {
		if s.done[resource] < acked || s.done[resource] > s.tried[resource] {
			s.t.Errorf("%s: version %d was done last, %d was acknowledged and %d sent", resource, s.done[resource], acked, s.tried[resource])
		}
	}
	if s.outcomes[0] == 0 || s.outcomes[1]+s.outcomes[2] == 0 || s.outcomes[3] == 0 {
		s.t.Errorf("leases ended in these ways: %v; the test shows little", s.outcomes)
	}
	s.t.Logf("%d leases (done, tried again, again later, vanished: %v) of %d resources", s.leases, s.outcomes, len(s.acked))
}
