package nats_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
)

// TestNothingIsScheduled: of several message schedules that are due together JetStream may deliver the latest only (https://github.com/nats-io/nats-server/issues/8423), and schedules that
// share a subject wipe each other out (https://github.com/HorizonRepublic/nestjs-jetstream/pull/178). Delays of this queue are none: whatever is due in the same instant comes, each once,
// nothing in the stream is a schedule, and the stream would take none.
func TestNothingIsScheduled(t *testing.T) {
	const jobs = 300
	opts := nats.Options{URL: address(t), Namespace: namespace()}
	q := open(t, opts)
	batch := make([]queue.Job, jobs)
	for i := range batch {
		batch[i] = job(fmt.Sprintf("due-%03d", i))
	}
	if err := q.Enqueue(t.Context(), batch...); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	due := time.Now().Add(2 * time.Second)
	for left := jobs; left > 0; {
		leases, err := q.Receive(ctx, "", left)
		if err != nil {
			t.Fatalf("Receive: %v", err)
		}
		left -= len(leases)
		for _, lease := range leases {
			settle(t, q, lease, queue.Retry(time.Until(due), "all at once"))
		}
	}
	lookForSchedules(t, opts)
	came := make(map[string]int)
	for len(came) < jobs {
		leases, err := q.Receive(ctx, "", 100)
		if err != nil {
			t.Fatalf("Receive after %d of %d jobs that were due at once: %v", len(came), jobs, err)
		}
		for _, lease := range leases {
			came[lease.EventID]++
			settle(t, q, lease, queue.Done())
		}
	}
	for id, times := range came {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
	receiveNone(t, q)
}

// lookForSchedules reads the whole stream, past the queue.
func lookForSchedules(t *testing.T, opts nats.Options) {
	t.Helper()
	conn, err := natsgo.Connect(opts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name := range js.StreamNames(t.Context()).Name() {
		if !strings.Contains(name, opts.Namespace) {
			continue
		}
		found++
		stream, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		info := stream.CachedInfo()
		if info.Config.AllowMsgSchedules {
			t.Errorf("stream %s takes schedules", name)
		}
		read := 0
		for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
			m, err := stream.GetMsg(t.Context(), seq)
			if err != nil {
				continue // there is none any more
			}
			read++
			for header := range m.Header {
				if strings.HasPrefix(header, "Nats-Schedule") {
					t.Fatalf("message %d of stream %s has the header %s", seq, name, header)
				}
			}
		}
		if read == 0 {
			t.Errorf("stream %s has no message: nothing was looked at", name)
		}
	}
	if found == 0 {
		t.Fatal("the queue has no stream")
	}
}
