package loadgen

import (
	"context"
	"encoding/binary"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// coarse is up to when before an instant a timer of the runtime is good enough, near from when on setting a timer takes too long.
	coarse = 2 * time.Millisecond
	near   = 40 * time.Microsecond
	// turn is how long the scheduler may send what is overdue before others go first: each time costs two system calls, a tenth of what a request costs. It is added
	// to the lateness of what is late anyway.
	turn = 50 * time.Microsecond
)

// sleeper waits as precisely as Linux can, and lets everybody else have the processor meanwhile.
//
// A timer of the runtime wakes up to a millisecond late, because the runtime waits in epoll with milliseconds. A timerfd is a file that becomes readable at an
// instant, to the microsecond (timerfd_create(2)), and the runtime waits for it as for a socket, in the same system call. So answers are received while the
// scheduler sleeps, also where it shares its only processor with them. Setting a timer takes microseconds, in a virtual machine tens of them; the last stretch
// is therefore spent going to sleep and being woken at once, which lets whatever can run go first.
//
// Note: clock_nanosleep is as precise, but keeps the processor until the runtime notices the system call. Yielding in a loop (runtime.Gosched) keeps the
// runtime from looking at the network, which it does when nothing else is left to do, or every 10 ms. With both together, at 5,000 requests a second on one
// processor, the median answer seemed to take 2.5 ms instead of 0.14.
type sleeper struct {
	alarm, nudge *waker
	// yielded is when others went first the last time, at the latest.
	yielded time.Time
}

// newSleeper returns a sleeper, whose methods are for one goroutine at a time. Without descriptors it is less precise, and the books will say so.
func newSleeper() *sleeper {
	s := new(sleeper)
	if fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC); err == nil {
		s.alarm = newWaker(fd, func(fd int, after time.Duration) error {
			return unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(after))}, nil)
		})
	}
	if fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err == nil {
		one := binary.NativeEndian.AppendUint64(nil, 1) // to a counter of 64 bits, which is never read
		s.nudge = newWaker(fd, func(fd int, _ time.Duration) error {
			_, err := unix.Write(fd, one)
			return err
		})
	}
	return s
}

// close gives the descriptors back.
func (s *sleeper) close() {
	s.alarm.close()
	s.nudge.close()
	s.alarm, s.nudge = nil, nil
}

// sleep waits until t, or until ctx is done. If t is over, others go first nevertheless, once in a turn: above all the requests that were started before.
func (s *sleeper) sleep(ctx context.Context, t time.Time) {
	left := time.Until(t)
	if left <= 0 {
		if time.Since(s.yielded) >= turn {
			s.yield()
			s.yielded = time.Now()
		}
		return
	}
	for ; left > 0 && ctx.Err() == nil; left = time.Until(t) {
		switch {
		case left > coarse:
			sleepTimer(ctx, t.Add(-coarse))
		case left <= near:
			s.yield()
		case !s.alarm.wake(left - near/2):
			sleepTimer(ctx, t)
		}
	}
	s.yielded = t
}

// yield lets everybody else go first, and the runtime look at the network.
func (s *sleeper) yield() {
	if !s.nudge.wake(0) {
		runtime.Gosched()
	}
}

// waker is a file that wakes the goroutine that waits for it. Nil is one that cannot.
type waker struct {
	file *os.File
	raw  syscall.RawConn
	// arm makes the file readable after a time, and says at the second call that it was. It is made once.
	arm func(fd uintptr) bool
	// Of the wait under way.
	after time.Duration
	armed bool
	err   error
}

// newWaker makes a waker of a descriptor, which set makes readable after a time. It returns nil if the runtime cannot wait for that.
func newWaker(fd int, set func(fd int, after time.Duration) error) *waker {
	w := &waker{file: os.NewFile(uintptr(fd), "waker")}
	var err error
	if w.raw, err = w.file.SyscallConn(); err != nil || w.file.SetReadDeadline(time.Time{}) != nil {
		w.close()
		return nil
	}
	w.arm = func(fd uintptr) bool {
		if !w.armed {
			w.armed = true
			w.err = set(int(fd), w.after)
			return w.err != nil
		}
		return true
	}
	return w
}

// wake lets the goroutine sleep and be woken after a time. Each call makes the file readable anew, which is what the runtime is told (EPOLLET of epoll(7)), so that
// nothing has to be read. It reports false if it did not work.
func (w *waker) wake(after time.Duration) bool {
	if w == nil {
		return false
	}
	w.after, w.armed, w.err = after, false, nil
	return w.raw.Read(w.arm) == nil && w.err == nil
}

// close gives the descriptor back.
func (w *waker) close() {
	if w != nil {
		_ = w.file.Close()
	}
}
