//go:build !linux

package loadgen

import (
	"context"
	"time"
)

// sleeper waits as precisely as the runtime's timers are.
type sleeper struct{}

func newSleeper() *sleeper { return new(sleeper) }

// close gives back what the sleeper has: nothing.
func (*sleeper) close() {}

// sleep waits until t, or until ctx is done.
func (*sleeper) sleep(ctx context.Context, t time.Time) { sleepTimer(ctx, t) }
