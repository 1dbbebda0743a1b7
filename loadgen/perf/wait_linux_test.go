package perf

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// waitUntil waits more precisely than a timer of the runtime, which may be a millisecond late.
func waitUntil(t time.Time) {
	for {
		d := time.Until(t)
		switch {
		case d <= 0:
			return
		case d > 80*time.Microsecond:
			ts := unix.NsecToTimespec(int64(d - 60*time.Microsecond))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil)
		default:
			runtime.Gosched()
		}
	}
}
