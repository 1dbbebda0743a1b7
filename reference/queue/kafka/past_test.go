package kafka_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
)

func settle(t testing.TB, q *kafka.Queue, lease queue.Lease, outcome queue.Outcome) {
	t.Helper()
	if err := q.Settle(t.Context(), lease, outcome); err != nil {
		t.Fatalf("Settle of %s: %v", lease.EventID, err)
	}
}

// states are all events that are known and their states.
func states(t testing.TB, q *kafka.Queue) (out []string) {
	t.Helper()
	err := q.Events(t.Context(), queue.EventFilter{}, func(e queue.Event) error {
		out = append(out, fmt.Sprint(e.EventID, " ", e.State))
		return nil
	})
	if err != nil {
		t.Fatalf("Events: %v", err)
	}
	return out
}

// TestForgottenStaysForgotten: what one handle had forgotten is so for all, whenever they read the log and whatever they keep themselves.
func TestForgottenStaysForgotten(t *testing.T) {
	name := namespace()
	q, beside := open(t, kafka.Options{Namespace: name, Retention: kafka.MinRetention}), open(t, kafka.Options{Namespace: name})
	enqueue(t, q, "done", "letter", "waiting")
	leases := receive(t, q, 2)
	settle(t, q, leases[0], queue.Done())
	settle(t, q, leases[1], queue.Dead("no hope"))
	want := []string{"letter failed", "waiting pending"}
	for len(states(t, q)) > len(want) { // the test's own limit ends it
		if t.Context().Err() != nil {
			t.Fatal("nothing is ever forgotten")
		}
	}
	for who, h := range map[string]*kafka.Queue{"who forgot": q, "who was there": beside, "who comes later": open(t, kafka.Options{Namespace: name})} {
		if diff := cmp.Diff(want, states(t, h)); diff != "" {
			t.Errorf("events to the one %s (-want +got):\n%s", who, diff)
		}
		if _, err := h.Event(t.Context(), "stripe", "done"); !errors.Is(err, queue.ErrUnknownEvent) {
			t.Errorf("Event by the one %s: got error %v, want %v", who, err, queue.ErrUnknownEvent)
		}
		if d, err := h.Depth(t.Context()); err != nil || d.Done != 0 || d.Expired != 1 || d.Dead != 1 || d.Waiting != 1 {
			t.Errorf("Depth to the one %s: got %+v, error %v; want one expired, dead and waiting", who, d, err)
		}
	}
	if got := q.Claims().DedupWindow; got != kafka.MinRetention {
		t.Errorf("claims: got a window of %v, want the retention", got)
	}
}

// TestPayloadsFromTheLog: finished events have their payloads, which are in nobody's memory, whatever was in the same record and however large.
func TestPayloadsFromTheLog(t *testing.T) {
	name := namespace()
	q := open(t, kafka.Options{Namespace: name})
	large := job("large")
	large.Payload = bytes.Repeat([]byte("payload "), q.Claims().MaxPayload/8)
	if err := q.Enqueue(t.Context(), job("first"), job("second"), large); err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, "third")
	for range 4 {
		settle(t, q, receive(t, q, 1)[0], queue.Done())
	}
	later := open(t, kafka.Options{Namespace: name})
	for _, want := range []queue.Job{job("first"), job("second"), large, job("third")} {
		e, err := later.Event(t.Context(), "stripe", want.EventID)
		if err != nil || !bytes.Equal(e.Payload, want.Payload) || e.State != queue.StateDone {
			t.Errorf("Event %s: got %s with %d bytes, error %v", want.EventID, e.State, len(e.Payload), err)
		}
	}
	if err := later.Replay(t.Context(), "stripe", "large", false); err != nil {
		t.Fatalf("Replay: %v", err)
	}
	for _, h := range []*kafka.Queue{q, later} { // each of whom has read of it
		lease := receive(t, h, 1)[0]
		if lease.Attempt > 1 || !bytes.Equal(lease.Payload, large.Payload) {
			t.Errorf("replayed: got %s, attempt %d, with %d bytes", lease.EventID, lease.Attempt, len(lease.Payload))
		}
		settle(t, h, lease, queue.Done())
		if err := h.Replay(t.Context(), "stripe", "large", false); err != nil {
			t.Fatalf("Replay: %v", err)
		}
	}
}

// TestOlderProgramsRead: what an older program can read stays as it writes it, so that both may have a queue open until somebody asks for more.
func TestOlderProgramsRead(t *testing.T) {
	name := namespace()
	q := open(t, kafka.Options{Namespace: name})
	enqueue(t, q, "a")
	settle(t, q, receive(t, q, 1)[0], queue.Done())
	if _, err := q.Depth(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := q.Replay(t.Context(), "stripe", "a", false); err != nil {
		t.Fatal(err)
	}
	start := map[string]map[int32]kgo.Offset{"floodproof." + name: {0: kgo.NewOffset().At(0)}}
	client, err := kgo.NewClient(kgo.SeedBrokers(address(t)), kgo.ConsumePartitions(start))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var versions []byte
	for len(versions) < 5 && t.Context().Err() == nil {
		for _, r := range client.PollFetches(t.Context()).Records() {
			versions = append(versions, r.Value[0])
		}
	}
	if want := []byte{1, 1, 1, 1, 2}; !bytes.HasPrefix(versions, want) { // stored, claimed, settled, asked; and replayed
		t.Errorf("versions of the records: got %v, want %v", versions, want)
	}
}

// TestRetentionOption: a retention that nobody can mean is refused.
func TestRetentionOption(t *testing.T) {
	if _, err := kafka.Open(t.Context(), kafka.Options{Brokers: address(t), Retention: time.Millisecond}); err == nil {
		t.Error("Open: got no error")
	}
}
