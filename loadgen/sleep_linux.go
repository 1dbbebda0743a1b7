package loadgen

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil waits until t as precisely as Linux can, or until ctx is done.
//
// A timer of the runtime wakes up to a millisecond late, because the runtime waits in epoll with milliseconds; hence the last two are slept in
// clock_nanosleep. The kernel in turn adds its timer slack of 50 µs (prctl(2), PR_SET_TIMERSLACK), so the sleep aims that much earlier and
// the rest is spent yielding.
func sleepUntil(ctx context.Context, t time.Time) {
	const (
		coarse = 2 * time.Millisecond
		slack  = 60 * time.Microsecond
	)
	if d := time.Until(t); d > coarse {
		sleepTimer(ctx, t.Add(-coarse))
	}
	for ctx.Err() == nil {
		d := time.Until(t)
		switch {
		case d <= 0:
			return
		case d > slack:
			// Whatever was started before goes first: the system call keeps this processor, and what waits for it, until the runtime notices.
			runtime.Gosched()
			if d = time.Until(t); d <= slack {
				continue
			}
			ts := unix.NsecToTimespec(int64(d - slack))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // a signal ends it early: the loop sleeps again
		default:
			runtime.Gosched()
		}
	}
}
