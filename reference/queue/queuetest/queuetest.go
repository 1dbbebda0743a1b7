// Package queuetest is the contract of a queue backend as tests. Every backend passes it whole, in one call:
//
//	func TestQueue(t *testing.T) {
//		queuetest.Run(t, func(t testing.TB) queuetest.Opened { ... })
//	}
//
// What a backend does not claim is not tested, and the test says so in its log. A check that passes on a queue that breaks its rule would be worth nothing; the
// package's own test therefore breaks a good queue in one way after another, and each of these must be caught.
//
// The checks are written for real servers on busy machines: they wait for things and not for a time, and where a time is
// part of the contract they only assert what a slow machine cannot falsify (never before, and not late every time).
package queuetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// Opened is a fresh, empty queue for one check, and the means to open it as often as the check likes.
type Opened struct {
	// Claims are what the backend promises for this queue.
	Claims queue.Claims
	// Open opens one more handle of this same queue, as another process would, whose leases last as long as said. The check closes
	// it. Leases are at least a second, but for backends that cannot go so low, which may round up to MinLease.
	Open func(ctx context.Context, lease time.Duration) (queue.Queue, error)
	// MinLease is the shortest lease that the backend can give; 0 is none.
	MinLease time.Duration
	// Retain, if not nil, is Open for a queue that deletes finished events once they are older than the retention, and looks for them often. Without it what a retention
	// deletes is not checked.
	Retain func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error)
	// Address is what Child's opener needs to open this queue in another process. Without it, or without a call of Child in the package's TestMain,
	// the check that kills a process is skipped.
	Address string
}

// Run runs all checks, each against a queue of its own from open, which registers its clean-up with t. They run at the same time, as far as go test's -parallel lets them: most
// of them wait most of the time, and queues on one server must not notice each other.
func Run(t *testing.T, open func(t testing.TB) Opened) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			if c.name != countsGoroutines {
				t.Parallel()
			}
			c.run(start(t, open))
		})
	}
}

// countsGoroutines is the check that cannot stand others beside it.
const countsGoroutines = "close-leaves-no-goroutine"

// check is one rule of the contract.
type check struct {
	name string
	run  func(*suite)
}

func checks() []check {
	return []check{
		{"enqueue-then-receive", enqueueThenReceive},
		{"payload-sizes", payloadSizes},
		{"payload-too-large", payloadTooLarge},
		{"dedup-within-call", dedupWithinCall},
		{"dedup-later", dedupLater},
		{"dedup-concurrent", dedupConcurrent},
		{"batch-all-or-none", batchAllOrNone},
		{"batch-of-1000", batchOf1000},
		{"retry-comes-back", retryComesBack},
		{"retry-not-before", retryNotBefore},
		{"lease-expires", leaseExpires},
		{"consumer-vanishes", consumerVanishes},
		{"settle-after-lapse", settleAfterLapse},
		{"settle-lapsed-without-heir", settleLapsedWithoutHeir},
		{"settle-twice", settleTwice},
		{"stale-token", staleToken},
		{"outcome-zero", outcomeZero},
		{"extend", extend},
		{"extend-after-lapse", extendAfterLapse},
		{"steps-kept", stepsKept},
		{"step-after-lapse", stepAfterLapse},
		{"debounce-newest", debounceNewest},
		{"debounce-late-version", debounceLateVersion},
		{"debounce-longest-wait", debounceLongestWait},
		{"debounce-while-running", debounceWhileRunning},
		{"debounce-retry-gives-way", debounceRetryGivesWay},
		{"debounce-lapse-gives-way", debounceLapseGivesWay},
		{"debounce-edges", debounceEdges},
		{"debounce-duplicate", debounceDuplicate},
		{"debounce-many", debounceMany},
		{"debounce-resources-apart", debounceResourcesApart},
		{"dead-listed", deadListed},
		{"dead-on-arrival", deadOnArrival},
		{"redrive-begins", redriveBegins},
		{"redrive-keeps-steps", redriveKeepsSteps},
		{"drop-forgets", dropForgets},
		{"history-kept", historyKept},
		{"history-of-letters", historyOfLetters},
		{"events-listed", eventsListed},
		{"events-in-order", eventsInOrder},
		{"replay-begins", replayBegins},
		{"replay-pending", replayPending},
		{"replay-forgets", replayForgets},
		{"replay-superseded", replaySuperseded},
		{"retention-expires", retentionExpires},
		{"no-shared-lease", noSharedLease},
		{"receive-honours-context", receiveHonoursContext},
		{"receive-honours-max", receiveHonoursMax},
		{"receive-waits-for-enqueue", receiveWaitsForEnqueue},
		{"oldest-first", oldestFirst},
		{"lanes-apart", lanesApart},
		{"lane-kept", laneKept},
		{"lane-waits", laneWaits},
		{"lane-depth", laneDepth},
		{"limit-shared", limitShared},
		{"limit-burst", limitBurst},
		{"limit-concurrent", limitConcurrent},
		{"limit-refused", limitRefused},
		{"close-drains", closeDrains},
		{"close-ends-receive", closeEndsReceive},
		{countsGoroutines, closeLeavesNoGoroutine},
		{"reopen-keeps", reopenKeeps},
		{"killed-process", killedProcess},
		{"depth", depth},
		{"claims", claims},
	}
}

// The leases that checks ask for. longLease never lapses within a check.
const (
	longLease  = 5 * time.Minute
	shortLease = time.Second
)

// patience is how long a check waits for what must come. It is only ever used up by a queue that fails.
const patience = 30 * time.Second

// suite is what a check works with.
type suite struct {
	testing.TB
	opened   Opened
	ctx      context.Context
	patience time.Duration
}

func start(t testing.TB, open func(testing.TB) Opened) *suite {
	t.Helper()
	return &suite{TB: t, opened: open(t), ctx: t.Context(), patience: patience}
}

// open opens a handle with leases that outlast the check.
func (s *suite) open() queue.Queue { return s.openLease(longLease) }

// openShort opens a handle whose leases lapse soon, and returns how soon.
func (s *suite) openShort() queue.Queue { return s.openLease(max(shortLease, s.opened.MinLease)) }

func (s *suite) openLease(lease time.Duration) queue.Queue {
	s.Helper()
	return s.closing(s.opened.Open(s.ctx, lease))
}

// closing is a handle that is closed with the check.
func (s *suite) closing(q queue.Queue, err error) queue.Queue {
	s.Helper()
	if err != nil {
		s.Fatalf("open the queue: %v", err)
	}
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), s.patience)
		defer cancel()
		if err := q.Close(ctx); err != nil {
			s.Errorf("close the queue: %v", err)
		}
	})
	return q
}

func (s *suite) enqueue(q queue.Queue, jobs ...queue.Job) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	if err := q.Enqueue(ctx, jobs...); err != nil {
		s.Fatalf("Enqueue of %d jobs: %v", len(jobs), err)
	}
}

// receive takes exactly n leases, in as many calls as it needs.
func (s *suite) receive(q queue.Queue, n int) []queue.Lease {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	var got []queue.Lease
	for len(got) < n {
		leases, err := q.Receive(ctx, "", n-len(got))
		if err != nil {
			s.Fatalf("Receive after %d of %d jobs: %v", len(got), n, err)
		}
		if len(leases) == 0 {
			s.Fatalf("Receive returned neither a lease nor an error")
		}
		got = append(got, leases...)
	}
	return got
}

// receiveNone makes sure that there is nothing to receive for a while. A queue that is slow may pass it by mistake; one that is right cannot fail.
func (s *suite) receiveNone(q queue.Queue, during time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, during)
	defer cancel()
	leases, err := q.Receive(ctx, "", 100)
	if len(leases) > 0 {
		s.Fatalf("Receive gave %s (attempt %d), want nothing", leases[0].EventID, leases[0].Attempt)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		s.Fatalf("Receive on an empty queue: got error %v, want that of its context", err)
	}
}

func (s *suite) settle(q queue.Queue, lease queue.Lease, outcome queue.Outcome) {
	s.Helper()
	if err := s.trySettle(q, lease, outcome); err != nil {
		s.Fatalf("Settle of %s: %v", lease.EventID, err)
	}
}

func (s *suite) trySettle(q queue.Queue, lease queue.Lease, outcome queue.Outcome) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.patience)
	defer cancel()
	return q.Settle(ctx, lease, outcome)
}

// wantLost asserts that an answer is ErrLeaseLost.
func (s *suite) wantLost(what string, err error) {
	s.Helper()
	if !errors.Is(err, queue.ErrLeaseLost) {
		s.Fatalf("%s: got error %v, want %v", what, err, queue.ErrLeaseLost)
	}
}

// pass waits until an instant is behind.
func (s *suite) pass(at time.Time) {
	s.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
		s.Fatalf("the test ended while it waited: %v", s.ctx.Err())
	}
}
