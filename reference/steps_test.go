package reference

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

func TestParseSteps(t *testing.T) {
	got, err := ParseSteps("PUT order,POST email, PUT  fulfilled")
	if diff := cmp.Diff(OrderSteps(), got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
	for text, want := range map[string]string{
		"": "PUT or POST", "order": "PUT or POST", "GET order": "PUT or POST", "PUT a/b": "letters", "PUT a,POST a": "twice", "put order": "PUT or POST", "PUT order,": "PUT or POST",
	} {
		if steps, err := ParseSteps(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, error %v, want one with %q", text, steps, err, want)
		}
	}
}

// stepSink notes the calls and fails the nth of them, after it took them.
type stepSink struct {
	calls []string
	fail  map[int]int // status by call, from 1
}

func (s *stepSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.calls = append(s.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/effects/")+" "+r.Header.Get("Idempotency-Key"))
	if status, ok := s.fail[len(s.calls)]; ok {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(status)
	}
}

// TestStepHandler breaks the handling of one order at each place and goes on from there: finished steps are not called again.
func TestStepHandler(t *testing.T) {
	const order, email, fulfilled = "PUT o-1/order ", "POST o-1/email o-1/email", "PUT o-1/fulfilled "
	for name, tt := range map[string]struct {
		fail map[int]int
		want []string
	}{
		"no failure":   {nil, []string{order, email, fulfilled}},
		"first fails":  {map[int]int{1: 500}, []string{order, order, email, fulfilled}},
		"mail fails":   {map[int]int{2: 503, 3: 500}, []string{order, email, email, email, fulfilled}},
		"last is told": {map[int]int{3: 429}, []string{order, email, fulfilled, fulfilled}},
	} {
		t.Run(name, func(t *testing.T) {
			downstream := &stepSink{fail: tt.fail}
			srv := httptest.NewServer(downstream)
			defer srv.Close()
			q, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = q.Close(context.WithoutCancel(t.Context())) }()
			h, err := NewStepHandler(newTestSink(t, srv.URL, 0), q, OrderSteps())
			if err != nil {
				t.Fatal(err)
			}
			if err := q.Enqueue(t.Context(), queue.Job{Provider: "stripe", EventID: "o-1"}); err != nil {
				t.Fatal(err)
			}
			for outcome := queue.Retry(0, "again"); !outcome.IsDone(); {
				leases, err := q.Receive(t.Context(), "", 1)
				if err != nil {
					t.Fatal(err)
				}
				failure := h.Handle(t.Context(), leases[0])
				if _, told := errors.AsType[*RetryAfterError](failure); told != (tt.fail[len(downstream.calls)] == 429 || tt.fail[len(downstream.calls)] == 503) {
					t.Errorf("after %d calls: %v does not tell what the downstream asked for", len(downstream.calls), failure)
				}
				if failure == nil {
					outcome = queue.Done()
				}
				if err := q.Settle(t.Context(), leases[0], outcome); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, downstream.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStepHandlerLosesItsLease: it stops before the next step.
func TestStepHandlerLosesItsLease(t *testing.T) {
	downstream := &stepSink{}
	srv := httptest.NewServer(downstream)
	defer srv.Close()
	now := time.Date(2026, 11, 30, 6, 0, 0, 0, time.UTC)
	q, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Lease: time.Minute, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close(context.WithoutCancel(t.Context())) }()
	if err := q.Enqueue(t.Context(), queue.Job{Provider: "stripe", EventID: "o-1"}); err != nil {
		t.Fatal(err)
	}
	leases, err := q.Receive(t.Context(), "", 1)
	if err != nil {
		t.Fatal(err)
	}
	stale := leases[0]
	stale.Token--
	h := &StepHandler{Sink: newTestSink(t, srv.URL, 0), Notes: q, Steps: OrderSteps()}
	if err := h.Handle(t.Context(), stale); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("got error %v, want %v", err, queue.ErrLeaseLost)
	}
	if want := []string{"PUT o-1/order "}; !slices.Equal(downstream.calls, want) {
		t.Errorf("calls %q, want %q", downstream.calls, want)
	}
}
