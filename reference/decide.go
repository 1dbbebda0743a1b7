package reference

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// policy decides what becomes of a job. It is pure: the same lease, error and time give the same outcome in every process.
type policy struct {
	backoff     Backoff
	maxAttempts int
	giveUpAfter time.Duration
	seed        uint64
}

// maxRetryAfter bounds what a downstream may ask for.
const maxRetryAfter = time.Hour

// decide turns a handler's error into the job's outcome. stopped says that the worker gave up on the handler.
func (p policy) decide(lease queue.Lease, err error, now time.Time, stopped bool) queue.Outcome {
	switch {
	case err == nil:
		return queue.Done()
	case errors.Is(err, ErrPermanent):
		return queue.Dead(reason(err))
	case stopped:
		return queue.Retry(0, errStopped.Error())
	case p.spent(lease, now):
		return queue.Dead(fmt.Sprintf("given up after %d attempts: %s", lease.Attempt, reason(err)))
	}
	if wait, ok := errors.AsType[*RetryAfterError](err); ok {
		return queue.Retry(p.spread(lease, wait.After), reason(err))
	}
	return queue.Retry(p.backoff.Delay(lease.Attempt, p.rand(lease)), reason(err))
}

// spent reports whether a job has had both its attempts and its time.
//
// The queue counts every lease: throttled ones, crashes of a worker, stops. So the count alone says nothing about the job; an outage
// of the downstream, or an hour of 429, spends any number of attempts of a job that is healthy. That is why time decides with it.
func (p policy) spent(lease queue.Lease, now time.Time) bool {
	return lease.Attempt >= p.maxAttempts && p.older(lease, now, 0)
}

// unsurvivable reports, before the handler is called, whether a job should have ended with an earlier attempt. No wait is longer than maxRetryAfter, so
// an attempt between its time and that much later was the last; that it decided nothing suggests that the job takes its worker down, and it must not do so for ever.
func (p policy) unsurvivable(lease queue.Lease, now time.Time) bool {
	return lease.Attempt > p.maxAttempts && p.older(lease, now, 2*maxRetryAfter)
}

// older reports whether a job is that much older than it may become.
func (p policy) older(lease queue.Lease, now time.Time, by time.Duration) bool {
	age := max(now.Sub(lease.ReceivedAt), 0) // 0 if the clock went back.
	return p.giveUpAfter < 0 || age-by >= p.giveUpAfter
}

// spread honours a wait and adds up to a quarter of it, at most a second, so that those who were sent away together do not return together.
func (p policy) spread(lease queue.Lease, wait time.Duration) time.Duration {
	wait = min(max(wait, 0), maxRetryAfter)
	return wait + time.Duration(p.rand(lease).Int64N(int64(min(wait/4, time.Second))+1))
}

// rand is the source of chance of one attempt of one job. It is derived and not shared: no lock, and the same in every order of execution.
func (p policy) rand(lease queue.Lease) *rand.Rand {
	return rand.New(rand.NewPCG(p.seed^uint64(lease.ID), uint64(lease.Attempt)))
}

// maxReason is the longest reason that is kept, in bytes.
const maxReason = 1024

// reason is an error's text as it is stored: bounded and valid UTF-8, because handlers quote what downstreams say.
func reason(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) <= maxReason {
		return text
	}
	cut := maxReason
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

// sleep waits for d and reports whether it did; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
