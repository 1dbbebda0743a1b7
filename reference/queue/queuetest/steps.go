package queuetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
)

func (s *suite) stepper(q queue.Queue) queue.Stepper {
	s.Helper()
	stepper, ok := q.(queue.Stepper)
	if !ok {
		s.Skip("the backend is no queue.Stepper")
	}
	return stepper
}

func (s *suite) wantSteps(q queue.Stepper, lease queue.Lease, want ...string) {
	s.Helper()
	got, err := q.Steps(s.ctx, lease)
	if err != nil {
		s.Fatalf("Steps of %s: %v", lease.EventID, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		s.Fatalf("Steps of %s, attempt %d (-want +got):\n%s", lease.EventID, lease.Attempt, diff)
	}
}

// stepsKept: what was finished under one lease is known under the next, of that job alone, in another handle too.
func stepsKept(s *suite) {
	q, other := s.open(), s.open()
	stepper := s.stepper(q)
	s.enqueue(q, jobsNamed("order", 2)...)
	leases := s.receive(q, 2)
	s.wantSteps(stepper, leases[0])
	for _, step := range []string{"upsert", "e-mail", "upsert"} {
		if err := stepper.Finish(s.ctx, leases[0], step); err != nil {
			s.Fatalf("Finish %q: %v", step, err)
		}
	}
	s.wantSteps(stepper, leases[0], "upsert", "e-mail")
	s.wantSteps(stepper, leases[1])
	s.settle(q, leases[0], queue.Retry(0, "crashed between two steps"))
	again := s.receive(other, 1)[0]
	s.wantSteps(s.stepper(other), again, "upsert", "e-mail")
	s.settle(other, again, queue.Done())
	s.wantLost("Finish after Settle", s.stepper(other).Finish(s.ctx, again, "late"))
}

// stepAfterLapse: who has lost the lease finishes nothing.
func stepAfterLapse(s *suite) {
	short, long := s.openShort(), s.open()
	late := s.stepper(short)
	s.enqueue(short, job("slow"), job("forgotten"))
	leases := s.receive(short, 2)
	s.pass(leases[1].Deadline.Add(100 * time.Millisecond))
	s.wantLost("Finish under a lapsed lease that nobody took over", late.Finish(s.ctx, leases[0], "e-mail"))
	heirs := s.receive(long, 2)
	s.wantLost("Finish under a lapsed lease", late.Finish(s.ctx, leases[1], "e-mail"))
	for _, heir := range heirs {
		s.wantSteps(s.stepper(long), heir)
	}
}
