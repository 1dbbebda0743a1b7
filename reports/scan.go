package reports

import (
	"time"

	"floodproof/reports/ledger"
)

// scan is the first reading of a ledger: what must be known before a record can be placed.
type scan struct {
	// first is the earliest due time, last the latest instant of the run; attempts says whether there is any.
	first, last time.Duration
	attempts    bool
	// excuses are the times in which ack latencies do not count.
	excuses map[uint32]*interval
}

type interval struct{ from, until time.Duration }

// grace is how long after a heal a fault still excuses.
const grace = 5 * time.Second

// forever stands for a fault that was never healed.
const forever = time.Duration(1<<63 - 1)

func (s *scan) visitor() ledger.Visitor {
	s.excuses = map[uint32]*interval{}
	return ledger.Visitor{
		Attempt: func(a *ledger.Attempt) {
			if !s.attempts || a.Due < s.first {
				s.first, s.attempts = a.Due, true
			}
			s.last = max(s.last, a.Done)
		},
		Call:  func(c *ledger.Call) { s.last = max(s.last, c.At) },
		Fault: s.fault,
	}
}

func (s *scan) fault(f *ledger.Fault) {
	if !excuses(f.Side) {
		return
	}
	switch f.Phase {
	case ledger.Begin:
		s.excuses[f.Number] = &interval{f.At, forever}
	case ledger.Heal:
		if i := s.excuses[f.Number]; i != nil {
			i.until = f.At + grace
		}
	case ledger.Broken, ledger.NotApplicable, ledger.Unmet:
	}
}

// excuses reports whether a fault on a side excuses slow acknowledgements: what stands between the provider and the queue does, what
// comes after the queue does not.
func excuses(s ledger.Side) bool {
	switch s {
	case ledger.Receiver, ledger.Ingress, ledger.Broker, ledger.Disk, ledger.Clock:
		return true
	case ledger.Worker, ledger.Downstream, ledger.Traffic:
		return false
	default:
		return false
	}
}

// excused reports whether an attempt that was due at t is excused.
func (s *scan) excused(t time.Duration) bool {
	for _, i := range s.excuses {
		if t >= i.from && t <= i.until {
			return true
		}
	}
	return false
}
