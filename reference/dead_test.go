package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// deadQueue is a queue of one event.
func deadQueue(t *testing.T) *sqlite.Queue {
	t.Helper()
	q, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close(context.WithoutCancel(t.Context())) }) // it was only a place for the event
	if err := q.Enqueue(t.Context(), queue.Job{Provider: "stripe", EventID: "o-1"}); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestStepHandlerAfterRedrive: attempts begin at one again, and what is finished is not done again all the same.
func TestStepHandlerAfterRedrive(t *testing.T) {
	downstream := &stepSink{fail: map[int]int{3: 422}}
	srv := httptest.NewServer(downstream)
	defer srv.Close()
	q := deadQueue(t)
	h := &StepHandler{Sink: newTestSink(t, srv.URL, 0), Notes: q, Steps: OrderSteps()}
	for _, outcome := range []queue.Outcome{queue.Dead("refused"), queue.Done()} {
		leases, err := q.Receive(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Handle(t.Context(), leases[0]); (err == nil) != outcome.IsDone() || leases[0].Attempt != 1 {
			t.Errorf("attempt %d: got error %v", leases[0].Attempt, err)
		}
		if err := q.Settle(t.Context(), leases[0], outcome); err != nil {
			t.Fatal(err)
		}
		if outcome.IsDead() {
			if err := q.Redrive(t.Context(), "stripe", "o-1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{"PUT o-1/order ", "POST o-1/email o-1/email", "PUT o-1/fulfilled ", "PUT o-1/fulfilled "}
	if diff := cmp.Diff(want, downstream.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// TestWorkerOnDead: whoever asked is told of a dead letter once the queue has it, and of nothing else.
func TestWorkerOnDead(t *testing.T) {
	q := deadQueue(t)
	if err := q.Enqueue(t.Context(), queue.Job{Provider: "stripe", EventID: "o-2"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []string
	w := &Worker{
		Queue: q, Concurrency: 1,
		Handler: HandlerFunc(func(_ context.Context, lease queue.Lease) error {
			if lease.EventID == "o-1" {
				return Permanent(errors.New("no such order"))
			}
			cancel() // both are done with
			return nil
		}),
		OnDead: func(lease queue.Lease, reason string) {
			e, err := q.Event(t.Context(), lease.Provider, lease.EventID)
			told = append(told, fmt.Sprintln(lease.EventID, lease.Attempt, reason, e.State, err))
		},
	}
	if err := w.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"o-1 1 no such order failed <nil>\n"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
