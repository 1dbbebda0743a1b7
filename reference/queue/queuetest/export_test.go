package queuetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
)

// shortPatience is that with queues that are known to be broken.
const shortPatience = 2500 * time.Millisecond

// CheckNames are the names of all checks.
func CheckNames() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// Failures runs one check as Run would, but keeps its failures instead of failing t. skipped reports that the check found nothing to test.
func Failures(t *testing.T, name string, open func(testing.TB) Opened) (failures []string, skipped bool) {
	t.Helper()
	for _, c := range checks() {
		if c.name == name {
			r := &recorder{TB: t}
			r.do(func() {
				s := start(r, open)
				s.patience = shortPatience
				c.run(s)
			})
			r.cleanUp()
			return r.failures, r.skipped
		}
	}
	t.Fatalf("there is no check %q", name)
	return nil, false
}

// OutageFailures runs Outages as it would be run, but keeps its failures.
func OutageFailures(t *testing.T, kill, restart func(context.Context) error, open func(testing.TB, time.Duration) queue.Queue) []string {
	t.Helper()
	r := &recorder{TB: t}
	r.do(func() {
		s := &suite{TB: r, ctx: r.Context(), patience: 2 * shortPatience}
		s.outages(Outage{Kill: kill, Restart: restart}, func(lease time.Duration) queue.Queue { return open(r, lease) })
	})
	r.cleanUp()
	return r.failures
}

// recorder is a testing.TB that writes down what a check says of a queue. What it does not override is t's: directories, logs.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	skipped  bool
	cleanups []func()
	cancel   context.CancelFunc
	ctx      context.Context
}

// do runs f where runtime.Goexit ends nothing else.
func (r *recorder) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) cleanUp() {
	if r.cancel != nil {
		r.cancel()
	}
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.do(r.cleanups[i])
	}
}

// Context ends before the clean-up, as that of a real test.
func (r *recorder) Context() context.Context {
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithCancel(r.TB.Context())
	}
	return r.ctx
}

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, strings.TrimSpace(message))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) Cleanup(f func())                  { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Helper()                           {}
func (r *recorder) Error(args ...any)                 { r.fail(fmt.Sprintln(args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.fail(fmt.Sprintf(format, args...)) }
func (r *recorder) Fail()                             { r.fail("failed") }
func (r *recorder) FailNow()                          { r.fail("failed"); runtime.Goexit() }
func (r *recorder) Fatal(args ...any)                 { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }
func (r *recorder) Skip(...any)                       { r.skipped = true; runtime.Goexit() }
func (r *recorder) Skipf(string, ...any)              { r.skipped = true; runtime.Goexit() }
func (r *recorder) SkipNow()                          { r.skipped = true; runtime.Goexit() }
func (r *recorder) Skipped() bool                     { return r.skipped }
