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

// TestYieldLetsTheNetworkIn: on one processor, what comes over a pipe is received by somebody else while the scheduler never really sleeps, also where all that it
// has is overdue. Merely yielding, the runtime would look at the pipe after 10 ms.
func TestYieldLetsTheNetworkIn(t *testing.T) {
	for name, pass := range map[string]func(s *sleeper){
		"yield":   (*sleeper).yield,
		"overdue": func(s *sleeper) { s.sleep(t.Context(), time.Now().Add(-time.Second)) },
	} {
		t.Run(name, func(t *testing.T) {
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
				if n > 10_000_000 {
					t.Fatalf("nobody was woken within %d times", n)
				}
				pass(s)
			}
		})
	}
}

// TestOverdueSharesTurns: what is overdue goes out without a system call for each, but others get their turn.
func TestOverdueSharesTurns(t *testing.T) {
	s := newSleeper()
	defer s.close()
	start := time.Now()
	turns := 0
	for n := 0; n < 10_000 || time.Since(start) < 20*turn; n++ {
		before := s.yielded
		s.sleep(t.Context(), start)
		if s.yielded != before {
			if turns++; s.yielded.Sub(before) < turn {
				t.Fatalf("turn %d comes %v after the one before, want at least %v", turns, s.yielded.Sub(before), turn)
			}
		}
	}
	if most := int(time.Since(start)/turn) + 1; turns == 0 || turns > most {
		t.Errorf("%d turns within %v, want 1 to %d", turns, time.Since(start), most)
	}
}
