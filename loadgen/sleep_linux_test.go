package loadgen

import (
	"runtime"
	"testing"
	"time"
)

// TestWakersKeepWorking: neither a counter that runs full nor an event that nobody read may end the precise sleep after a while.
func TestWakersKeepWorking(t *testing.T) {
	s := newSleeper()
	defer s.close()
	if s.alarm == nil || s.nudge == nil {
		t.Fatalf("alarm %v, nudge %v, want both", s.alarm, s.nudge)
	}
	for i := range 2000 {
		if !s.nudge.wake(0) || i%10 == 0 && !s.alarm.wake(10*time.Microsecond) {
			t.Fatalf("not woken at the %dth time: %v, %v", i, s.nudge.err, s.alarm.err)
		}
	}
}

// TestYieldLetsTheNetworkIn: on one processor, what comes over a pipe is received by somebody else while the scheduler never really sleeps. Merely yielding, the
// runtime would look at the pipe after 10 ms.
func TestYieldLetsTheNetworkIn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := newSleeper()
	defer s.close()
	other := newSleeper()
	defer other.close()
	woken := make(chan struct{})
	go func() {
		defer close(woken)
		other.alarm.wake(time.Microsecond)
	}()
	for n := 1; ; n++ {
		select {
		case <-woken:
			return
		default:
		}
		if n > 100_000 {
			t.Fatalf("nobody was woken within %d times", n)
		}
		s.yield()
	}
}
