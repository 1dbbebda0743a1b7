package reference

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// Handler does the work of one job: it makes the effect.
//
// A handler must be idempotent: the same event can reach it more than once (a lease that lapsed, a crash between effect
// and settle), so the effect has to be tied to a key that the downstream knows, best lease.EventID.
//
// What it returns decides about the job: nil: done. An error made by Permanent: a dead letter at once. A *RetryAfterError: again
// after that time. Any other error: again after the worker's back-off.
//
// The context ends when the lease does or when the worker gives up at its stop; the handler must return soon after, because its
// slot is taken until it has. Handle is called from many goroutines at once, for different leases.
type Handler interface {
	Handle(ctx context.Context, lease queue.Lease) error
}

// HandlerFunc is a function as a Handler.
type HandlerFunc func(ctx context.Context, lease queue.Lease) error

// Handle calls the function.
func (f HandlerFunc) Handle(ctx context.Context, lease queue.Lease) error { return f(ctx, lease) }

// ErrPermanent is what errors.Is finds in an error made by Permanent.
var ErrPermanent = errors.New("permanent failure")

// Permanent marks an error as one that no repetition can mend (an unknown field, a business rule): the worker moves the
// job to the dead letters at once. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string   { return e.err.Error() }
func (e *permanentError) Unwrap() []error { return []error{e.err, ErrPermanent} }

// RetryAfterError says when a job should be tried again, because the downstream said so.
type RetryAfterError struct {
	// After is the least wait from now. The worker bounds it by an hour, so that a nonsensical header cannot park a job for years.
	After time.Duration
	// Everyone says that the downstream asked all callers to wait, not only for this job: the worker takes no new jobs until then.
	Everyone bool
	// Err is what happened. Nil is allowed.
	Err error
}

// Error describes the failure and the wait.
func (e *RetryAfterError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("try again after %v", e.After)
	}
	return fmt.Sprintf("%v (try again after %v)", e.Err, e.After)
}

// Unwrap returns Err.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// panicError is a handler's panic.
type panicError struct{ value any }

func (e *panicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.value) }

var (
	// errStopped is the cause of a handler's context that ended because the worker gave up at its stop.
	errStopped = errors.New("worker stopped")
	// errExited is what a handler returned that called runtime.Goexit.
	errExited = errors.New("handler ended its goroutine instead of returning")
)
