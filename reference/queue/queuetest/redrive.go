package queuetest

import (
	"errors"
	"time"

	"floodproof/reference/queue"
)

// die makes a dead letter of a job, with one attempt before the last, and returns its last lease.
func (s *suite) die(q queue.Queue, id string) queue.Lease {
	s.Helper()
	s.enqueue(q, job(id))
	s.settle(q, s.receive(q, 1)[0], queue.Retry(0, "a try"))
	last := s.receive(q, 1)[0]
	s.settle(q, last, queue.Dead("no hope for "+id))
	return last
}

// wantErr asserts that an answer is an error of a kind.
func (s *suite) wantErr(what string, err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("%s: got error %v, want %v", what, err, want)
	}
}

// redriveBegins: a redriven job is due at once, with its attempts counted from zero and a token above the old one, is no letter any more, and is done once.
func redriveBegins(s *suite) {
	q, other := s.open(), s.open()
	r, ok := other.(queue.Redriver)
	if !ok {
		s.Skip("the backend is no queue.Redriver")
	}
	last := s.die(q, "sick")
	s.wantErr("Redrive of an event that never came", r.Redrive(s.ctx, "stripe", "never sent"), queue.ErrNotDead)
	if err := r.Redrive(s.ctx, "stripe", "sick"); err != nil {
		s.Fatalf("Redrive: %v", err)
	}
	s.wantErr("Redrive of a job that was redriven", r.Redrive(s.ctx, "stripe", "sick"), queue.ErrNotDead)
	s.wantLost("Settle under a lease from before the redrive", s.trySettle(q, last, queue.Done()))
	again := s.receive(q, 1)[0]
	s.wantJob(again.Job, job("sick"))
	s.wantLease(again, 1)
	if again.Token <= last.Token {
		s.Fatalf("the redriven job has token %d after %d, want it to grow", again.Token, last.Token)
	}
	s.wantLost("Settle under a lease from before the redrive, while there is a new one", s.trySettle(q, last, queue.Done()))
	s.wantErr("Redrive of a job that is leased", r.Redrive(s.ctx, "stripe", "sick"), queue.ErrNotDead)
	s.settle(q, again, queue.Retry(0, "not yet"))
	second := s.receive(q, 1)[0]
	s.wantLease(second, 2)
	s.settle(q, second, queue.Done())
	s.wantErr("Redrive of a job that is done", r.Redrive(s.ctx, "stripe", "sick"), queue.ErrNotDead)
	s.enqueue(q, job("sick")) // known
	s.receiveNone(q, quiet)
	if lister, ok := q.(queue.DeadLister); ok && len(s.deadLetters(lister.(queue.Queue))) != 0 {
		s.Fatalf("a redriven job is still a dead letter")
	}
	s.wantDepth(q, queue.Depth{Done: 1})
}

// redriveKeepsSteps: what is finished stays finished, and what died again is a letter again, of its newest attempts.
func redriveKeepsSteps(s *suite) {
	q := s.open()
	r, ok := q.(queue.Redriver)
	if !ok {
		s.Skip("the backend is no queue.Redriver")
	}
	stepper := s.stepper(q)
	s.enqueue(q, job("order"))
	lease := s.receive(q, 1)[0]
	if err := stepper.Finish(s.ctx, lease, "e-mail"); err != nil {
		s.Fatalf("Finish: %v", err)
	}
	s.settle(q, lease, queue.Dead("no stock"))
	if err := r.Redrive(s.ctx, "stripe", "order"); err != nil {
		s.Fatalf("Redrive: %v", err)
	}
	again := s.receive(q, 1)[0]
	s.wantSteps(stepper, again, "e-mail")
	s.settle(q, again, queue.Dead("still no stock"))
	if _, ok := q.(queue.DeadLister); !ok {
		return
	}
	letters := s.deadLetters(q)
	if len(letters) != 1 || letters[0].Reason != "still no stock" || letters[0].Attempts != 1 {
		s.Fatalf("DeadLetters after a second death: got %+v, want one letter with the newest reason and 1 attempt", letters)
	}
}

// dropForgets: a dropped letter is gone, counts as nothing, and its event is known all the same.
func dropForgets(s *suite) {
	q, other := s.open(), s.open()
	d, ok := other.(queue.Dropper)
	if !ok {
		s.Skip("the backend is no queue.Dropper")
	}
	last := s.die(q, "hopeless")
	s.die(q, "other")
	s.enqueue(q, job("healthy"))
	healthy := s.receive(q, 1)[0]
	for _, id := range []string{"never sent", "healthy"} {
		s.wantErr("Drop of "+id, d.Drop(s.ctx, "stripe", id), queue.ErrNotDead)
	}
	if err := d.Drop(s.ctx, "stripe", "hopeless"); err != nil {
		s.Fatalf("Drop: %v", err)
	}
	s.wantErr("Drop of what was dropped", d.Drop(s.ctx, "stripe", "hopeless"), queue.ErrNotDead)
	s.wantLost("Settle under the lease of a dropped letter", s.trySettle(q, last, queue.Retry(0, "")))
	s.settle(q, healthy, queue.Done())
	s.enqueue(q, job("hopeless")) // known
	s.receiveNone(q, quiet)
	if r, ok := q.(queue.Redriver); ok {
		s.wantErr("Redrive of a dropped letter", r.Redrive(s.ctx, "stripe", "hopeless"), queue.ErrNotDead)
	}
	if _, ok := q.(queue.DeadLister); ok {
		if letters := s.deadLetters(q); len(letters) != 1 || letters[0].EventID != "other" {
			s.Fatalf("DeadLetters after a Drop: got %+v, want the other one", letters)
		}
	}
	s.wantDepth(q, queue.Depth{Dead: 1, Done: 1})
}

// historyKept: the whole life of an event can be looked up, by whichever handle.
func historyKept(s *suite) {
	q, other := s.open(), s.open()
	h, ok := other.(queue.Historian)
	if !ok {
		s.Skip("the backend is no queue.Historian")
	}
	_, err := h.Event(s.ctx, "stripe", "never sent")
	s.wantErr("Event that never came", err, queue.ErrUnknownEvent)
	s.enqueue(q, job("storied"))
	s.wantHistory(h, "storied", queue.StatePending, 0, 0)
	first := s.receive(q, 1)[0]
	e := s.wantHistory(h, "storied", queue.StateProcessing, 1, 1)
	if d := first.Deadline.Sub(e.Deadline); d < -time.Second || d > time.Second || e.Since.After(e.Deadline) {
		s.Fatalf("Event that is leased: got a lease from %v to %v, want it to end at %v", e.Since, e.Deadline, first.Deadline)
	}
	s.settle(q, first, queue.Retry(0, "first"))
	s.settle(q, s.receive(q, 1)[0], queue.Dead("second"))
	s.wantHistory(h, "storied", queue.StateFailed, 2, 2, "first", "second")
	r, ok := other.(queue.Redriver)
	if !ok {
		return
	}
	if err := r.Redrive(s.ctx, "stripe", "storied"); err != nil {
		s.Fatalf("Redrive: %v", err)
	}
	e = s.wantHistory(h, "storied", queue.StatePending, 2, 0, "first", "second")
	if len(e.Acts) != 1 || e.Acts[0].What != queue.ActRedrive || e.Acts[0].Leases != 2 || e.Acts[0].At.IsZero() {
		s.Fatalf("Event that was redriven: got acts %+v, want one, after 2 leases", e.Acts)
	}
	s.settle(q, s.receive(q, 1)[0], queue.Retry(0, "third"))
	s.settle(q, s.receive(q, 1)[0], queue.Done())
	s.wantHistory(h, "storied", queue.StateDone, 4, 2, "first", "second", "third")
}

// historyOfLetters: a letter that was dead on arrival tells why, and one that was dropped who did that, and what it was.
func historyOfLetters(s *suite) {
	q, other := s.open(), s.open()
	h, ok := other.(queue.Historian)
	if !ok {
		s.Skip("the backend is no queue.Historian")
	}
	born := job("malformed")
	born.DeadOnArrival = "not JSON"
	s.enqueue(q, born)
	e, err := h.Event(s.ctx, "stripe", "malformed")
	if err != nil {
		s.Fatalf("Event: %v", err)
	}
	e.DeadOnArrival = born.DeadOnArrival // a backend may say it here or in the attempts only
	s.wantJob(e.Job, born)
	if e.State != queue.StateFailed || e.Leases != 0 || len(e.Attempts) != 1 || e.Attempts[0].Number != 0 || e.Attempts[0].Reason != born.DeadOnArrival || e.Attempts[0].At.IsZero() {
		s.Fatalf("Event that was dead on arrival: got %s with %d leases and attempts %+v, want failed, 0, and attempt 0 with the reason", e.State, e.Leases, e.Attempts)
	}
	d, ok := other.(queue.Dropper)
	if !ok {
		return
	}
	s.die(q, "hopeless")
	if err := d.Drop(s.ctx, "stripe", "hopeless"); err != nil {
		s.Fatalf("Drop: %v", err)
	}
	e = s.wantHistory(h, "hopeless", queue.StateDropped, 2, 2, "a try", "no hope for hopeless")
	if len(e.Acts) != 1 || e.Acts[0].What != queue.ActDrop || e.Acts[0].Leases != 2 || e.Acts[0].At.IsZero() {
		s.Fatalf("Event that was dropped: got acts %+v, want one, after 2 leases", e.Acts)
	}
}

func (s *suite) wantHistory(h queue.Historian, id string, state queue.State, leases, attempt int, reasons ...string) queue.Event {
	s.Helper()
	e, err := h.Event(s.ctx, "stripe", id)
	if err != nil {
		s.Fatalf("Event: %v", err)
	}
	s.wantJob(e.Job, job(id))
	if e.State != state || e.Leases != leases || e.Attempt != attempt || e.Since.IsZero() {
		s.Fatalf("Event: got %s since %v with %d leases, attempt %d; want %s, %d and %d", e.State, e.Since, e.Leases, e.Attempt, state, leases, attempt)
	}
	if len(e.Attempts) != len(reasons) {
		s.Fatalf("Event: got attempts %+v, want those with the reasons %q", e.Attempts, reasons)
	}
	for i, a := range e.Attempts {
		if a.Number != i+1 || a.Reason != reasons[i] || a.At.IsZero() {
			s.Fatalf("Event: got attempt %+v, want number %d with the reason %q and a time", a, i+1, reasons[i])
		}
	}
	return e
}
