package nats_test

import (
	"strings"
	"testing"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
)

// TestLostJobIsDead: a job whose message somebody deleted becomes a dead letter when it is to be worked on again, the queue tells of it, and the others go on.
func TestLostJobIsDead(t *testing.T) {
	ns := namespace()
	q := open(t, nats.Options{URL: address(t), Namespace: ns})
	told := make(chan queue.DeadLetter, 10)
	q.TellDead(func(l queue.DeadLetter) { told <- l })
	enqueue(t, q, "lost")
	settle(t, q, receive(t, q, 1)[0], queue.Retry(0, "busy"))
	conn, err := client.Connect(address(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "FP_"+ns)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context(), jetstream.WithPurgeSubject("fp."+ns+".q.*.*.0")); err != nil {
		t.Fatal(err)
	}
	enqueue(t, q, "good")
	if got := receive(t, q, 1); got[0].EventID != "good" {
		t.Errorf("got %s, want the good one", got[0].EventID)
	}
	if l := <-told; !strings.Contains(l.Reason, "the job is gone") || l.Attempts != 2 {
		t.Errorf("told of %+v", l)
	}
	if d, err := q.Depth(t.Context()); err != nil || d.Dead != 1 {
		t.Errorf("Depth: got %+v, error %v; want 1 dead", d, err)
	}
}
