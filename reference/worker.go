package reference

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/reference/crashpoint"
	"floodproof/reference/queue"
)

// The defaults of a Worker.
const (
	DefaultConcurrency = 10
	DefaultMaxAttempts = 20
	// DefaultGiveUpAfter is three days, as long as Stripe itself keeps trying (https://docs.stripe.com/webhooks, read November 2026).
	DefaultGiveUpAfter = 72 * time.Hour
	DefaultGrace       = 10 * time.Second
)

// settleGrace is how long, after the handlers were told to give up, they may take to return and their leases to be settled; abandonGrace is
// how long calls of the queue may take to notice that nobody waits for them any more.
const (
	settleGrace  = 5 * time.Second
	abandonGrace = time.Second
)

// Worker is the second stage: it leases jobs, calls the handler, and settles what came of it. Queue and Handler must be set, every
// other field has a working zero value. No field may change during Run.
type Worker struct {
	// Queue is where the jobs are. If it is a queue.Extender, the leases of slow handlers are prolonged.
	Queue queue.Queue
	// Lane is the lane that it takes jobs from, "" the default one. A process that works on several lanes runs a Worker for each: what is slow, throttled or
	// broken in one then takes no slot, and no pause, from another.
	Lane string
	// Handler does the work.
	Handler Handler
	// Concurrency is the most jobs in hand at once. 0: DefaultConcurrency. A slot is free again when the handler has
	// returned and the job is settled, or its lease is over.
	Concurrency int
	// Backoff is the wait after a failure that does not say when to come again.
	Backoff Backoff
	// MaxAttempts and GiveUpAfter bound how long a failing job is tried: it becomes a dead letter when it has had
	// that many leases and was received that long ago, both. 0: DefaultMaxAttempts and DefaultGiveUpAfter.
	// A negative GiveUpAfter leaves the decision to the attempts alone.
	//
	// Time decides with the count because the queue counts every lease. Being throttled, an outage of the downstream,
	// a crash or a stop of a worker all cost attempts, and none says anything about the job. So 429 cannot kill a healthy job before GiveUpAfter, and no outage shorter than that can.
	MaxAttempts int
	GiveUpAfter time.Duration
	// Extend is by how much a lease is prolonged, each time half of it is gone. 0: the length that the lease had when it came.
	Extend time.Duration
	// Grace is how long handlers may go on after the stop before their context ends. 0: DefaultGrace.
	Grace time.Duration
	// Seed feeds the jitter; the same seed gives the same waits for the same jobs.
	Seed uint64
	// Crash is told of the points of a worker. Nil, as in use: nothing.
	Crash crashpoint.Hook
	// OnDead is told of each job that became a dead letter, after the queue has it as one, and why. It is called by whoever worked on the job and must not block. A crash in
	// between skips it: what must know of every letter reads the queue's list. Nil: nobody is told.
	OnDead func(lease queue.Lease, reason string)
	// Now is the clock by which the age of a job is told. Nil: time.Now. How long a lease has left does not depend on it.
	Now func() time.Time
	// Logger hears of dead letters, panics, and a queue that fails. Nil: nothing is logged.
	Logger *slog.Logger

	counters counters
}

// WorkerCounts is what a Worker has done since it was made.
type WorkerCounts struct {
	// Leased = Done + Retried + Dead + LeaseLost + Unsettled + those in hand.
	Leased, Done, Retried, Dead int64
	// LeaseLost are jobs that somebody else owns by now: their lease ended before the handler did, or before the settle.
	LeaseLost int64
	// Unsettled are jobs whose outcome the queue could not be told; their lease lapses and they come again.
	Unsettled int64
	// Throttled are the retries that the downstream asked for, Stopped those given back at the stop. Both are in Retried.
	Throttled, Stopped int64
	// Panics are handlers that panicked, ReceiveFailures and SettleFailures calls of the queue that failed and were repeated.
	Panics, ReceiveFailures, SettleFailures int64
}

type counters struct {
	leased, done, retried, dead, lost, unsettled, throttled, stopped, panics, receiveFailures, settleFailures atomic.Int64
}

// Counts returns the counters. It may be called at any time.
func (w *Worker) Counts() WorkerCounts {
	c := &w.counters
	return WorkerCounts{
		Leased: c.leased.Load(), Done: c.done.Load(), Retried: c.retried.Load(), Dead: c.dead.Load(),
		LeaseLost: c.lost.Load(), Unsettled: c.unsettled.Load(), Throttled: c.throttled.Load(), Stopped: c.stopped.Load(),
		Panics: c.panics.Load(), ReceiveFailures: c.receiveFailures.Load(), SettleFailures: c.settleFailures.Load(),
	}
}

// Run works until ctx ends, and returns nil then. The stop has two steps: from the end of ctx it takes no more jobs; after Grace the
// contexts of the handlers that are still at work end too, and their jobs are given back to be leased again at once.
// It returns an error when the worker is not usable, when the queue was closed under it, or when a handler ignores the end of its context.
func (w *Worker) Run(ctx context.Context) error {
	if w.Queue == nil || w.Handler == nil || w.Concurrency < 0 || w.MaxAttempts < 0 || w.Extend < 0 || w.Grace < 0 {
		return errors.New("run worker: set Queue and Handler, and nothing but GiveUpAfter below 0")
	}
	r := newWorkerRun(ctx, w)
	defer r.abandon()
	defer close(r.jobs)
	if err := errors.Join(r.take(ctx), r.finish()); err != nil {
		return fmt.Errorf("run worker: %w", err)
	}
	return nil
}

// workerRun is one call of Run.
type workerRun struct {
	worker   *Worker
	queue    queue.Queue
	extender queue.Extender // Nil if the queue is none.
	policy   policy
	gate     gate
	grace    time.Duration
	log      *slog.Logger
	now      func() time.Time
	counters *counters

	// free holds one token for each free slot.
	free chan struct{}
	busy sync.WaitGroup
	// jobs are taken by goroutines that have finished one. They are kept because a new one would have to grow its stack to the depth of a handler again.
	jobs chan queue.Lease
	// handling is the parent of every handler's context and ends with giveUp; settling is that of every settle and ends with abandon.
	handling context.Context
	giveUp   context.CancelCauseFunc
	settling context.Context
	abandon  context.CancelFunc
}

func newWorkerRun(ctx context.Context, w *Worker) *workerRun {
	r := &workerRun{
		worker:   w,
		queue:    w.Queue,
		policy:   policy{backoff: w.Backoff, maxAttempts: orDefault(w.MaxAttempts, DefaultMaxAttempts), giveUpAfter: orDefault(w.GiveUpAfter, DefaultGiveUpAfter), seed: w.Seed},
		grace:    orDefault(w.Grace, DefaultGrace),
		log:      w.Logger,
		counters: &w.counters,
		free:     make(chan struct{}, orDefault(w.Concurrency, DefaultConcurrency)),
		jobs:     make(chan queue.Lease),
	}
	r.extender, _ = w.Queue.(queue.Extender)
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now = w.Now; r.now == nil {
		r.now = time.Now
	}
	for range cap(r.free) {
		r.free <- struct{}{}
	}
	background := context.WithoutCancel(ctx)
	r.handling, r.giveUp = context.WithCancelCause(background)
	r.settling, r.abandon = context.WithCancel(background)
	return r
}

// take leases jobs and starts their handlers until ctx ends or the queue is closed.
func (r *workerRun) take(ctx context.Context) error {
	for failures := 0; ; {
		if !r.gate.wait(ctx) {
			return nil
		}
		n := r.acquire(ctx)
		if n == 0 {
			return nil
		}
		leases, err := r.queue.Receive(ctx, r.worker.Lane, n)
		r.start(leases)
		r.release(n - len(leases))
		switch {
		case len(leases) > 0 && err == nil:
			failures = 0
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, queue.ErrClosed):
			return fmt.Errorf("receive: %w", err)
		}
		// A broken queue is waited for, never a reason to end: who restarts it should not have to restart the workers too.
		failures++
		r.counters.receiveFailures.Add(1)
		r.log.WarnContext(ctx, "receive failed, will try again", "err", err, "failures", failures)
		if !sleep(ctx, receiveBackoff.nominal(failures)) {
			return nil
		}
	}
}

// receiveBackoff and settleBackoff are the waits between calls of a queue that fails.
var (
	receiveBackoff = Backoff{Base: 50 * time.Millisecond, Max: 2 * time.Second}
	settleBackoff  = Backoff{Base: 10 * time.Millisecond, Max: time.Second}
)

// acquire waits for a free slot and takes it and all others that are free. 0 means that ctx ended.
func (r *workerRun) acquire(ctx context.Context) (n int) {
	select {
	case <-ctx.Done():
		return 0
	case <-r.free:
	}
	for n = 1; ; n++ {
		select {
		case <-r.free:
		default:
			return n
		}
	}
}

func (r *workerRun) release(n int) {
	for range n {
		select {
		case r.free <- struct{}{}:
		default: // More leases than were asked for: they ran, but they make no new slots.
		}
	}
}

// start works on each lease in a goroutine of its own, which holds one slot.
func (r *workerRun) start(leases []queue.Lease) {
	r.counters.leased.Add(int64(len(leases)))
	r.busy.Add(len(leases))
	for _, lease := range leases {
		select {
		case r.jobs <- lease:
		default: // none of them waits
			go r.labour(lease)
		}
	}
}

// labour works on a first lease and then on others, until there will be no more.
func (r *workerRun) labour(lease queue.Lease) {
	for more := true; more; lease, more = <-r.jobs {
		r.job(lease)
	}
}

// job works on one lease and gives its slot back, even if the handler ends the goroutine.
func (r *workerRun) job(lease queue.Lease) {
	defer r.busy.Done()
	defer r.release(1)
	r.work(lease)
}

// finish waits for the handlers under way: for the grace as they are, then with their contexts ended.
func (r *workerRun) finish() error {
	finished := make(chan struct{})
	go func() {
		r.busy.Wait()
		close(finished)
	}()
	if within(finished, r.grace) {
		r.giveUp(errStopped)
		return nil
	}
	r.giveUp(errStopped)
	if within(finished, settleGrace) {
		return nil
	}
	r.abandon()
	if within(finished, abandonGrace) {
		return nil // Only settles were left; they are counted as unsettled.
	}
	return fmt.Errorf("stop: %d handlers ignore the end of their context", cap(r.free)-len(r.free))
}

// within reports whether done is closed within d.
func within(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}
