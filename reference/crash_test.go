package reference

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/crashpoint"
	"floodproof/reference/queue"
)

// TestReceiverPassesItsPoints: each at its instant, seen from the queue and from the sender.
func TestReceiverPassesItsPoints(t *testing.T) {
	all := crashpoint.Receiver()
	for _, tc := range []struct {
		name   string
		queue  *fakeQueue
		sample sample
		want   []crashpoint.Point
	}{
		{"genuine", &fakeQueue{}, sign("stripe", goodBody("stripe")), all},
		{"refused by the queue", &fakeQueue{enqueue: func(context.Context, []queue.Job) error { return errors.New("full") }}, sign("stripe", goodBody("stripe")), all[:1]},
		{"forged", &fakeQueue{}, sign("stripe", goodBody("stripe")).with("Stripe-Signature", "t=1,v1=00"), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var passed []crashpoint.Point
			w := httptest.NewRecorder()
			rc := newTestReceiver(t, tc.queue, func(cfg *ReceiverConfig) {
				cfg.Crash = func(p crashpoint.Point) {
					passed = append(passed, p)
					_, calls := tc.queue.jobs()
					if stored := p != crashpoint.BeforeEnqueue; (calls > 0) != stored {
						t.Errorf("at %s the queue was called %d times", p, calls)
					}
					if answered := p == crashpoint.AfterAnswer; w.Flushed != answered {
						t.Errorf("at %s the answer has left: %t", p, w.Flushed)
					}
				}
			})
			rc.ServeHTTP(w, tc.sample.request())
			if diff := cmp.Diff(tc.want, passed); diff != "" {
				t.Errorf("points (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReceiverAnswersTheSameWithPoints: a sender does not see whether a process can be crashed. Without the length, an answer that has left early would be chunked.
func TestReceiverAnswersTheSameWithPoints(t *testing.T) {
	answers := map[bool]*httptest.ResponseRecorder{}
	for _, points := range []bool{false, true} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) {
			if points {
				cfg.Crash = func(crashpoint.Point) {}
			}
		})
		answers[points] = send(rc, sign("stripe", goodBody("stripe")).request())
	}
	if a, b := answers[false], answers[true]; a.Code != b.Code || a.Body.String() != b.Body.String() {
		t.Errorf("without points %d %q, with them %d %q", a.Code, a.Body, b.Code, b.Body)
	}
	if length := answers[true].Header().Get("Content-Length"); length != "20" {
		t.Errorf("the length is %q, want 20", length)
	}
}

func TestWorkerPassesItsPoints(t *testing.T) {
	all := crashpoint.Worker()
	for _, tc := range []struct {
		name    string
		results []error
		want    []crashpoint.Point
	}{
		{"success", []error{nil}, all},
		{"failure and success", []error{errors.New("down"), nil}, append([]crashpoint.Point{crashpoint.AfterClaim}, all...)},
		{"dead", []error{Permanent(errors.New("no such plan"))}, all[:1]},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newLeaseQueue(1, time.Minute)
				var passed []crashpoint.Point
				var handled int
				r := runWorker(t, &Worker{
					Queue: q,
					Crash: func(p crashpoint.Point) {
						passed = append(passed, p)
						// Each lease is handled between its claim and its settle.
						claims := len(passed) - len(q.settlements())
						if p == crashpoint.AfterClaim && handled != len(q.settlements()) || p == crashpoint.BeforeSettle && claims < 1 {
							t.Errorf("at %s: handled %d times, settled %v", p, handled, q.settlements())
						}
					},
					Handler: HandlerFunc(func(context.Context, queue.Lease) error {
						handled++
						return tc.results[handled-1]
					}),
				})
				<-time.After(time.Minute)
				r.finish(t)
				if diff := cmp.Diff(tc.want, passed); diff != "" {
					t.Errorf("points (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestWorkerTellsAgesByItsClock: what is too old by the worker's clock has had its time, whatever the machine's says.
func TestWorkerTellsAgesByItsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLeaseQueue(1, time.Minute)
		r := runWorker(t, &Worker{
			Queue: q, MaxAttempts: 1, GiveUpAfter: time.Hour,
			Now:     func() time.Time { return time.Now().Add(2 * time.Hour) },
			Handler: HandlerFunc(func(context.Context, queue.Lease) error { return errors.New("down") }),
		})
		synctest.Wait()
		if got := q.settlements(); len(got) != 1 || got[0].verb != "dead" {
			t.Errorf("got %+v, want one dead letter", got)
		}
		r.finish(t)
	})
}
