package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// eventsListed: each event is in the list once, in its state, and the filter chooses.
func eventsListed(s *suite) {
	q := s.open()
	h, ok := q.(queue.Historian)
	if !ok {
		s.Skip("the backend is no queue.Historian")
	}
	start := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	jobs := make([]queue.Job, 4)
	for i, id := range []string{"done", "dead", "leased", "waiting"} {
		jobs[i] = job(id)
		jobs[i].Type = "orders/" + id
		jobs[i].ReceivedAt = start.Add(time.Duration(i) * time.Hour)
	}
	elsewhere := job("elsewhere")
	elsewhere.Provider, elsewhere.ReceivedAt, elsewhere.DeadOnArrival = "shopify", start.Add(4*time.Hour), "malformed"
	s.enqueue(q, jobs[:3]...)
	for _, lease := range s.receive(q, 3) {
		switch lease.EventID {
		case "done":
			s.settle(q, lease, queue.Done())
		case "dead":
			s.settle(q, lease, queue.Dead("no hope"))
		}
	}
	s.enqueue(q, jobs[3], elsewhere)
	list := func(f queue.EventFilter) (got []string) {
		s.Helper()
		err := h.Events(s.ctx, f, func(e queue.Event) error {
			got = append(got, fmt.Sprintf("%s %s", e.EventID, e.State))
			if e.Since.IsZero() || e.State == queue.StatePending && e.Leases != 0 || (e.State == queue.StateProcessing) == e.Deadline.IsZero() {
				s.Errorf("Events: got %+v, want since when it is so, and the lease of one that is leased", e)
			}
			if e.EventID != "elsewhere" && (e.Type != "orders/"+e.EventID || e.Provider != "stripe" || e.ReceivedAt.IsZero()) {
				s.Errorf("Events: got %+v, want its type, provider and time", e)
			}
			return nil
		})
		if err != nil {
			s.Fatalf("Events: %v", err)
		}
		slices.Sort(got)
		return got
	}
	for _, tt := range []struct {
		name   string
		filter queue.EventFilter
		want   []string
	}{
		{"all", queue.EventFilter{}, []string{"dead failed", "done done", "elsewhere failed", "leased processing", "waiting pending"}},
		{"since", queue.EventFilter{Since: start.Add(time.Hour)}, []string{"dead failed", "elsewhere failed", "leased processing", "waiting pending"}},
		{"until", queue.EventFilter{Until: start.Add(time.Hour)}, []string{"done done"}},
		{"state", queue.EventFilter{State: queue.StateFailed}, []string{"dead failed", "elsewhere failed"}},
		{"leased", queue.EventFilter{State: queue.StateProcessing, Since: start}, []string{"leased processing"}},
		{"provider", queue.EventFilter{Provider: "shopify"}, []string{"elsewhere failed"}},
		{"type", queue.EventFilter{Type: "o*s/d*"}, []string{"dead failed", "done done"}},
		{"nothing", queue.EventFilter{Type: "orders"}, nil},
	} {
		if diff := cmp.Diff(tt.want, list(tt.filter)); diff != "" {
			s.Errorf("Events with the filter %s (-want +got):\n%s", tt.name, diff)
		}
	}
	stop := errors.New("stop")
	s.wantErr("Events", h.Events(s.ctx, queue.EventFilter{}, func(queue.Event) error { return stop }), stop)
}

// eventsInOrder: events that came later are listed later, whatever their names, and whatever became of them. What comes at the same time, here in three handles, has no order.
func eventsInOrder(s *suite) {
	handles := []queue.Queue{s.open(), s.open(), s.open()}
	h, ok := handles[0].(queue.Historian)
	if !ok {
		s.Skip("the backend is no queue.Historian")
	}
	const rounds = 10
	want := make(map[string]int)
	start := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	for round := range rounds {
		for i, q := range handles {
			j := job(fmt.Sprintf("%02d", 7*(3*round+i)%(3*rounds)))
			j.ReceivedAt = start.Add(time.Duration(round) * time.Minute)
			want[j.EventID] = round
			s.enqueue(q, j)
		}
		leases := s.receive(handles[0], len(handles)) // so all are there
		s.settle(handles[0], leases[0], queue.Done())
		s.settle(handles[0], leases[1], queue.Retry(time.Hour, "later"))
	}
	round, listed := 0, 0
	err := h.Events(s.ctx, queue.EventFilter{Since: start, Until: start.Add(time.Hour)}, func(e queue.Event) error {
		if want[e.EventID] < round {
			s.Errorf("Events: %s, of round %d, is listed behind one of round %d", e.EventID, want[e.EventID], round)
		}
		round = want[e.EventID]
		listed++
		return nil
	})
	if err != nil || listed != len(want) {
		s.Fatalf("Events: got %d, error %v, want %d", listed, err, len(want))
	}
}

// replayPending: an event that is to be tried again much later is due at once, with its attempts at zero.
func replayPending(s *suite) {
	q := s.open()
	r, ok := q.(queue.Replayer)
	if !ok {
		s.Skip("the backend is no queue.Replayer")
	}
	s.enqueue(q, job("later"))
	lease := s.receive(q, 1)[0]
	s.settle(q, lease, queue.Retry(time.Hour, "a try"))
	if err := r.Replay(s.ctx, "stripe", "later", false); err != nil {
		s.Fatalf("Replay: %v", err)
	}
	again := s.receive(q, 1)[0]
	s.wantLease(again, 1)
	if again.Token <= lease.Token {
		s.Fatalf("the replayed job has token %d after %d, want it to grow", again.Token, lease.Token)
	}
	s.settle(q, again, queue.Done())
	if h, ok := q.(queue.Historian); ok {
		e := s.wantHistory(h, "later", queue.StateDone, 2, 1, "a try")
		if len(e.Acts) != 1 || e.Acts[0].What != queue.ActReplay || e.Acts[0].Leases != 1 {
			s.Fatalf("Event that was replayed: got acts %+v, want one, after 1 lease", e.Acts)
		}
	}
	s.wantDepth(q, queue.Depth{Done: 1})
}

// replayBegins: a done event is worked on again with its attempts at zero, a new token, and what it had finished.
func replayBegins(s *suite) {
	q, other := s.open(), s.open()
	r, ok := other.(queue.Replayer)
	if !ok {
		s.Skip("the backend is no queue.Replayer")
	}
	s.enqueue(q, job("order"))
	first := s.receive(q, 1)[0]
	s.wantErr("Replay of a job that is leased", r.Replay(s.ctx, "stripe", "order", true), queue.ErrInProgress)
	s.finish(q, first, "e-mail")
	s.settle(q, first, queue.Retry(0, "a try"))
	last := s.receive(q, 1)[0]
	s.settle(q, last, queue.Done())
	s.wantDepth(q, queue.Depth{Done: 1})
	s.wantErr("Replay of an event that never came", r.Replay(s.ctx, "stripe", "never sent", false), queue.ErrUnknownEvent)
	if err := r.Replay(s.ctx, "stripe", "order", false); err != nil {
		s.Fatalf("Replay: %v", err)
	}
	s.wantLost("Settle under a lease from before the replay", s.trySettle(q, last, queue.Done()))
	again := s.receive(q, 1)[0]
	s.wantJob(again.Job, job("order"))
	s.wantLease(again, 1)
	if again.Token <= last.Token {
		s.Fatalf("the replayed job has token %d after %d, want it to grow", again.Token, last.Token)
	}
	if stepper, ok := q.(queue.Stepper); ok {
		s.wantSteps(stepper, again, "e-mail")
	}
	s.settle(q, again, queue.Done())
	s.receiveNone(q, quiet)
	s.wantDepth(q, queue.Depth{Done: 1})
}

// finish finishes a step, where the backend knows steps.
func (s *suite) finish(q queue.Queue, lease queue.Lease, step string) {
	s.Helper()
	stepper, ok := q.(queue.Stepper)
	if !ok {
		return
	}
	if err := stepper.Finish(s.ctx, lease, step); err != nil {
		s.Fatalf("Finish: %v", err)
	}
}

// replayForgets: what was finished is to be done again, if somebody says so; and a dead letter, or one that was dropped, can be replayed too.
func replayForgets(s *suite) {
	q := s.open()
	r, ok := q.(queue.Replayer)
	if !ok {
		s.Skip("the backend is no queue.Replayer")
	}
	s.enqueue(q, job("order"))
	lease := s.receive(q, 1)[0]
	s.finish(q, lease, "e-mail")
	s.settle(q, lease, queue.Dead("no stock"))
	if d, ok := q.(queue.Dropper); ok {
		if err := d.Drop(s.ctx, "stripe", "order"); err != nil {
			s.Fatalf("Drop: %v", err)
		}
	}
	if err := r.Replay(s.ctx, "stripe", "order", true); err != nil {
		s.Fatalf("Replay: %v", err)
	}
	again := s.receive(q, 1)[0]
	if stepper, ok := q.(queue.Stepper); ok {
		s.wantSteps(stepper, again)
	}
	s.settle(q, again, queue.Done())
	s.wantDepth(q, queue.Depth{Done: 1})
}

// replaySuperseded: an update that a newer one followed is not replayed, because that would undo the newer one.
func replaySuperseded(s *suite) {
	q := s.open()
	r, ok := q.(queue.Replayer)
	if !ok || !s.opened.Claims.Debounce {
		s.Skip("the backend is no queue.Replayer, or does not debounce")
	}
	update := func(version int64) queue.Job {
		j := job(fmt.Sprintf("update-%d", version))
		j.Resource, j.Version = "order", version
		j.Debounce = queue.Debounce{Quiet: time.Millisecond, MaxWait: time.Millisecond}
		return j
	}
	for version := range int64(2) {
		s.enqueue(q, update(version))
		s.settle(q, s.receive(q, 1)[0], queue.Done())
	}
	s.wantErr("Replay of the older update", r.Replay(s.ctx, "stripe", "update-0", false), queue.ErrSuperseded)
	if err := r.Replay(s.ctx, "stripe", "update-1", false); err != nil {
		s.Fatalf("Replay of the newest update: %v", err)
	}
	lease := s.receive(q, 1)[0]
	if lease.EventID != "update-1" {
		s.Fatalf("Receive gave %s after the replay of update-1", lease.EventID)
	}
	s.settle(q, lease, queue.Done())
	s.wantDepth(q, queue.Depth{Done: 2})
}
