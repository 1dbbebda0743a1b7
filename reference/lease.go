package reference

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"floodproof/reference/crashpoint"
	"floodproof/reference/queue"
)

// work takes one lease from its start to its end.
func (r *workerRun) work(lease queue.Lease) {
	r.worker.Crash.At(crashpoint.AfterClaim)
	if left := r.gate.left(); left > 0 {
		// The gate was closed while Receive was waiting. Calling all the same would only be refused.
		r.counters.throttled.Add(1)
		r.settle(lease, queue.Retry(r.policy.spread(lease, left), "the downstream asked to wait"))
		return
	}
	if r.policy.unsurvivable(lease, r.now()) {
		outcome := queue.Dead(fmt.Sprintf("given up after %d attempts, the last of which did not end", lease.Attempt-1))
		r.note(lease, outcome, nil)
		r.settle(lease, outcome)
		return
	}
	h, ok := r.hold(lease)
	if !ok {
		r.counters.lost.Add(1)
		return
	}
	err := errExited
	defer func() { r.conclude(h, err) }() // also when the handler ends its goroutine
	err = r.call(h.ctx, lease)
}

// conclude settles a lease whose handler has ended.
func (r *workerRun) conclude(h *holding, err error) {
	lease, held := h.end()
	if !held {
		r.counters.lost.Add(1)
		r.log.Debug("lease ended before its handler", "provider", lease.Provider, "event", lease.EventID, "attempt", lease.Attempt, "err", err)
		return
	}
	outcome := r.policy.decide(lease, err, r.now(), r.handling.Err() != nil)
	r.note(lease, outcome, err)
	if outcome.IsDone() {
		r.worker.Crash.At(crashpoint.BeforeSettle)
	}
	r.settle(lease, outcome)
}

// note counts what led to an outcome, and closes the gate if the downstream asked for it.
func (r *workerRun) note(lease queue.Lease, outcome queue.Outcome, err error) {
	wait, asked := errors.AsType[*RetryAfterError](err)
	if asked && wait.Everyone {
		r.gate.closeFor(wait.After)
	}
	switch {
	case outcome.IsDead():
		r.log.Error("job moved to the dead letters", "provider", lease.Provider, "event", lease.EventID, "attempt", lease.Attempt, "reason", outcome.Reason())
	case outcome.IsRetry() && r.handling.Err() != nil:
		r.counters.stopped.Add(1)
	case outcome.IsRetry() && asked:
		r.counters.throttled.Add(1)
	}
}

// holding keeps a lease alive while its handler works. Most handlers end long before that takes anything: no goroutine runs beside them until it is time to look.
type holding struct {
	run    *workerRun
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu sync.Mutex
	// lease is as it is by now; lost says that it ended first, and then nothing may be settled; ended that the handler has.
	lease       queue.Lease
	lost, ended bool
	length      time.Duration
	timer       *time.Timer
}

// hold begins to look after a lease, unless that is over already.
func (r *workerRun) hold(lease queue.Lease) (*holding, bool) {
	length := time.Until(lease.Deadline)
	if length <= 0 {
		return nil, false
	}
	h := &holding{run: r, lease: lease, length: orDefault(r.worker.Extend, length)}
	h.ctx, h.cancel = context.WithCancelCause(r.handling)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(r.nextLook(lease), h.look)
	return h, true
}

// look prolongs the lease, or ends the handler's context if that is not possible any more.
func (h *holding) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	lease, held := h.run.keep(h.lease, h.length)
	if h.lease = lease; !held {
		h.lost = true
		h.cancel(queue.ErrLeaseLost)
		return
	}
	h.timer.Reset(h.run.nextLook(lease))
}

// end stops looking, and returns the lease as it is by now and whether it is still held.
func (h *holding) end() (queue.Lease, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	h.timer.Stop()
	h.cancel(nil)
	return h.lease, !h.lost && time.Until(h.lease.Deadline) > 0
}

// nextLook is when to look after a lease again: at half of what is left of it if it can be prolonged, else at its end.
func (r *workerRun) nextLook(lease queue.Lease) time.Duration {
	left := time.Until(lease.Deadline)
	if r.extender == nil || left < minLook {
		return left
	}
	return left / 2
}

// minLook keeps the attempts to prolong a lease from coming ever closer when they fail.
const minLook = 10 * time.Millisecond

// keep prolongs a lease if it can, and reports whether it is still held. A failure is no verdict: there is time until the deadline.
func (r *workerRun) keep(lease queue.Lease, length time.Duration) (queue.Lease, bool) {
	if r.extender == nil || time.Until(lease.Deadline) <= 0 {
		return lease, time.Until(lease.Deadline) > 0
	}
	ctx, cancel := context.WithDeadline(r.settling, lease.Deadline)
	defer cancel()
	longer, err := r.extender.Extend(ctx, lease, length)
	switch {
	case err == nil:
		return longer, true
	case errors.Is(err, queue.ErrLeaseLost):
		return lease, false
	}
	r.log.Warn("lease could not be prolonged, will try again", "provider", lease.Provider, "event", lease.EventID, "err", err)
	return lease, true
}

// call is Handle, with a panic turned into an error: one bad event must not end the work on all others.
func (r *workerRun) call(ctx context.Context, lease queue.Lease) (err error) {
	defer func() {
		if value := recover(); value != nil {
			r.counters.panics.Add(1)
			r.log.Error("handler panicked", "provider", lease.Provider, "event", lease.EventID, "panic", value, "stack", string(debug.Stack()))
			err = &panicError{value}
		}
	}()
	return r.worker.Handler.Handle(ctx, lease)
}

// settle tells the queue the outcome, again and again until it is decided or the lease is over. Concurrent
// calls share a durable write in the queue, so nothing is collected here.
func (r *workerRun) settle(lease queue.Lease, outcome queue.Outcome) {
	ctx, cancel := context.WithDeadline(r.settling, lease.Deadline)
	defer cancel()
	for failures := 1; ; failures++ {
		err := r.queue.Settle(ctx, lease, outcome)
		switch {
		case err == nil:
			r.settled(lease, outcome)
			return
		case errors.Is(err, queue.ErrLeaseLost):
			r.counters.lost.Add(1)
			return
		}
		r.counters.settleFailures.Add(1)
		if errors.Is(err, queue.ErrClosed) || !sleep(ctx, settleBackoff.nominal(failures)) {
			r.counters.unsettled.Add(1)
			r.log.Warn("outcome could not be stored; the job will come again", "provider", lease.Provider, "event", lease.EventID, "err", err)
			return
		}
	}
}

func (r *workerRun) settled(lease queue.Lease, outcome queue.Outcome) {
	switch {
	case outcome.IsDone():
		r.worker.Crash.At(crashpoint.AfterSettle)
		r.counters.done.Add(1)
	case outcome.IsRetry():
		r.counters.retried.Add(1)
	case outcome.IsDead():
		r.counters.dead.Add(1)
		if r.worker.OnDead != nil {
			r.worker.OnDead(lease, outcome.Reason())
		}
	}
}
