package nats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue"
	"floodproof/reference/queue/nats"
)

// quiet is how long a test looks for what must not come.
const quiet = 150 * time.Millisecond

func receiveNone(t testing.TB, q *nats.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), quiet)
	defer cancel()
	leases, err := q.Receive(ctx, "", 100)
	if len(leases) > 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Receive: got %d leases and error %v, want nothing", len(leases), err)
	}
}

// pass waits until an instant is behind.
func pass(t testing.TB, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, opts := range map[string]nats.Options{
		"namespace with a dot": {Namespace: "a.b"},
		"negative lease":       {Lease: -time.Second},
		"negative payload":     {MaxPayload: -1},
		"nobody there":         {URL: "nats://127.0.0.1:1"},
	} {
		if q, err := nats.Open(t.Context(), opts); err == nil {
			_ = q.Close(t.Context())
			t.Errorf("Open with %s: got no error", name)
		}
	}
}

// TestOpenRefusesTrimmedStream: somebody gave the stream an age, after which jobs and dead letters would vanish.
func TestOpenRefusesTrimmedStream(t *testing.T) {
	name := namespace()
	conn := connect(t, address(t))
	config := fmt.Sprintf(`{"name":"FP_%s","subjects":["fp.%s.>"],"storage":"file","num_replicas":1,"retention":"limits","discard":"new","max_msgs_per_subject":1,"allow_direct":true,"allow_atomic":true,"max_age":3600000000000}`, name, name)
	request(t, conn, "$JS.API.STREAM.CREATE.FP_"+name, config)
	q, err := nats.Open(t.Context(), nats.Options{URL: address(t), Namespace: name})
	if err == nil {
		_ = q.Close(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "no other limit") {
		t.Errorf("Open of a stream with an age: got error %v, want one about limits", err)
	}
}

func connect(t testing.TB, url string) *client.Conn {
	t.Helper()
	conn, err := client.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func request(t testing.TB, conn *client.Conn, subject, body string) []byte {
	t.Helper()
	answer, err := conn.Request(subject, []byte(body), 5*time.Second)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	var failure struct {
		Error any `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &failure); err != nil || failure.Error != nil {
		t.Fatalf("%s: answer %s, error %v", subject, answer.Data, err)
	}
	return answer.Data
}

// TestLateSettleAcknowledgesNothing: JetStream takes the acknowledgement of a message that was delivered to somebody else meanwhile, and would then never deliver it
// again. A late Settle must not send one: when the heir vanishes too, the job comes a third time.
func TestLateSettleAcknowledgesNothing(t *testing.T) {
	name := namespace()
	first, heir := open(t, nats.Options{Namespace: name, Lease: time.Second}), open(t, nats.Options{Namespace: name, Lease: time.Second})
	third := open(t, nats.Options{Namespace: name})
	enqueue(t, first, "late")
	old := receive(t, first, 1)[0]
	current := receive(t, heir, 1)[0]
	for _, outcome := range []queue.Outcome{queue.Done(), queue.Retry(time.Hour, "late"), queue.Retry(0, "late"), queue.Dead("late")} {
		if err := first.Settle(t.Context(), old, outcome); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle of a lease that has an heir: got error %v, want %v", err, queue.ErrLeaseLost)
		}
	}
	if err := heir.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := receive(t, third, 1)[0]
	if lease.Attempt != 3 || lease.Token <= current.Token {
		t.Errorf("third lease: attempt %d, token %d after %d; want attempt 3 and a larger token", lease.Attempt, lease.Token, current.Token)
	}
	settle(t, third, lease, queue.Done())
}

// waitFor asks until something is so.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for !is() {
		if ctx.Err() != nil {
			t.Fatalf("there were never %s", what)
		}
		tick(ctx)
	}
}

// TestLapseAtItsOwnTime: all leases of a lane share a consumer, whose one ack_wait is 10 s; a shorter lease ends when it ends.
func TestLapseAtItsOwnTime(t *testing.T) {
	q := open(t, nats.Options{Lease: 500 * time.Millisecond})
	enqueue(t, q, "short")
	receive(t, q, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	if leases, err := q.Receive(ctx, "", 1); err != nil || leases[0].Attempt != 2 {
		t.Errorf("after a lease of half a second: got %v, error %v; want the job again", leases, err)
	}
}

// TestSlowRequest: where an account limits the unacknowledged messages the server neither fills a request nor ends it. What came is given out all the same.
func TestSlowRequest(t *testing.T) {
	name := namespace()
	q := open(t, nats.Options{Namespace: name, Lease: time.Minute})
	config := fmt.Sprintf(`{"stream_name":"FP_%s","config":{"durable_name":"L","name":"L","deliver_policy":"all","ack_policy":"explicit","replay_policy":"instant","filter_subject":"fp.%s.q.*.L.*","ack_wait":10000000000,"max_deliver":-1,"max_ack_pending":3,"max_waiting":8192}}`, name, name)
	enqueue(t, q, "a", "b", "c", "d", "e")
	leases := receive(t, q, 1) // the consumer is there
	request(t, connect(t, address(t)), "$JS.API.CONSUMER.CREATE.FP_"+name+".L.fp."+name+".q.*.L.*", config)
	if leases = append(leases, receive(t, q, 5)...); len(leases) != 3 {
		t.Errorf("with 3 unacknowledged messages allowed: got %d leases", len(leases))
	}
	for _, lease := range leases {
		settle(t, q, lease, queue.Done())
	}
	for len(leases) < 5 {
		leases = append(leases, receive(t, q, 5)...)
	}
}

// TestLaneMadeByMany: handles that come to a new lane at the same moment all make its consumer, and all get their jobs.
func TestLaneMadeByMany(t *testing.T) {
	const n = 6
	for range 5 {
		name := namespace()
		var handles []*nats.Queue
		for range n {
			handles = append(handles, open(t, nats.Options{Namespace: name}))
		}
		answers := make(chan error)
		for i, q := range handles {
			enqueue(t, handles[0], fmt.Sprint("job-", i))
			go func() {
				_, err := q.Receive(t.Context(), "", 1)
				answers <- err
			}()
		}
		for range n {
			if err := <-answers; err != nil {
				t.Errorf("Receive: %v", err)
			}
		}
	}
}

// TestManyOut: at its default of 1000 unacknowledged messages JetStream delivers nothing more; leased and delayed jobs are such messages here.
func TestManyOut(t *testing.T) {
	const n = 1100
	q := open(t, nats.Options{Lease: 5 * time.Minute})
	jobs := make([]queue.Job, n)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("out-%04d", i))
	}
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	for out := 0; out < n; {
		out += len(receive(t, q, n-out))
	}
	enqueue(t, q, "one more")
	if got := receive(t, q, 1)[0].EventID; got != "one more" {
		t.Errorf("beside %d leased jobs: got %s", n, got)
	}
}

// TestKnownAmongNew: an atomic batch is refused for one condition that fails. A known event must not keep the new ones out, whether it is in the same call or in
// another's that shares the batch.
func TestKnownAmongNew(t *testing.T) {
	name := namespace()
	a, b := open(t, nats.Options{Namespace: name}), open(t, nats.Options{Namespace: name})
	elsewhere := job("known")
	elsewhere.Lane = "elsewhere"
	if err := a.Enqueue(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := b.Enqueue(t.Context(), job("new-0"), job("known"), job("new-1")); err != nil {
		t.Fatal(err)
	}
	answers := make(chan error)
	const calls = 30
	for i := range calls {
		go func() {
			id := fmt.Sprint("shared-", i)
			if i%3 == 0 {
				id = "known"
			}
			answers <- b.Enqueue(t.Context(), job(id))
		}()
	}
	for range calls {
		if err := <-answers; err != nil {
			t.Errorf("Enqueue beside a known event: %v", err)
		}
	}
	d, err := a.Depth(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(1 + 2 + calls*2/3); d.Waiting != want {
		t.Errorf("waiting: got %d, want %d", d.Waiting, want)
	}
	got := map[string]int{}
	for n := 0; n < 2+calls*2/3; {
		for _, lease := range receive(t, b, 100) {
			got[lease.EventID]++
			n++
		}
	}
	if got["known"] != 0 || len(got) != 2+calls*2/3 {
		t.Errorf("events in the default lane: %v, want all new ones once and the known one not", got)
	}
	receiveNone(t, b)
}

// TestDelayedStandsInLine: the server delivers again before it delivers anew. A job whose delay ends must all the same come after those that were due before it.
func TestDelayedStandsInLine(t *testing.T) {
	q := open(t, nats.Options{})
	enqueue(t, q, "delayed")
	lease := receive(t, q, 1)[0]
	settle(t, q, lease, queue.Retry(200*time.Millisecond, "later"))
	due := time.Now().Add(200 * time.Millisecond)
	enqueue(t, q, "waits-0", "waits-1", "waits-2")
	pass(t, due.Add(100*time.Millisecond))
	var got []string
	for range 4 {
		lease := receive(t, q, 1)[0]
		got = append(got, lease.EventID)
		if lease.EventID == "delayed" && lease.Attempt != 2 {
			t.Errorf("attempt of the delayed job: got %d, want 2", lease.Attempt)
		}
		settle(t, q, lease, queue.Done())
	}
	if want := "waits-0 waits-1 waits-2 delayed"; strings.Join(got, " ") != want {
		t.Errorf("order: got %v, want %s", got, want)
	}
	receiveNone(t, q)
}

// TestExtendKeepsToken: the worker that settles and the one that prolongs are often not the same goroutine.
func TestExtendKeepsToken(t *testing.T) {
	name := namespace()
	q, other := open(t, nats.Options{Namespace: name, Lease: time.Minute}), open(t, nats.Options{Namespace: name})
	enqueue(t, q, "by itself", "by another", "by itself, settled by another")
	for _, by := range []struct{ extender, settler *nats.Queue }{{q, q}, {other, q}, {q, other}} {
		lease := receive(t, q, 1)[0]
		extended, err := by.extender.Extend(t.Context(), lease, time.Hour)
		if err != nil {
			t.Fatalf("Extend: %v", err)
		}
		if extended.Token != lease.Token || extended.Deadline.Sub(lease.Deadline) < 50*time.Minute {
			t.Errorf("extended: token %d until %v, was token %d until %v", extended.Token, extended.Deadline, lease.Token, lease.Deadline)
		}
		settle(t, by.settler, lease, queue.Done())
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Done != 3 || d.Leased != 0 || d.Waiting != 0 {
		t.Errorf("depth: got %+v, error %v; want 3 done and nothing else", d, err)
	}
}

// TestSettleElsewhere: a lease is a value; another handle may end it, with every outcome.
func TestSettleElsewhere(t *testing.T) {
	name := namespace()
	q, other := open(t, nats.Options{Namespace: name, Lease: time.Second}), open(t, nats.Options{Namespace: name})
	for _, outcome := range []queue.Outcome{queue.Retry(0, "r"), queue.Retry(time.Millisecond, "r"), queue.Dead("d"), queue.Done()} {
		enqueue(t, q, "job", "job too")
		lease := receive(t, q, 1)[0]
		settle(t, other, lease, outcome)
		if err := q.Settle(t.Context(), lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle after another handle's: got error %v, want %v", err, queue.ErrLeaseLost)
		}
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Dead != 1 || d.Done != 1 || d.Waiting+d.Leased != 0 {
		t.Errorf("depth: got %+v, error %v; want 1 dead, 1 done", d, err)
	}
}

func TestRedrive(t *testing.T) {
	q := open(t, nats.Options{})
	born := job("born dead")
	born.DeadOnArrival = "not JSON"
	if err := q.Enqueue(t.Context(), job("died"), born); err != nil {
		t.Fatal(err)
	}
	settle(t, q, receive(t, q, 1)[0], queue.Dead("hopeless"))
	for _, id := range []string{"died", "born dead"} {
		if err := q.Redrive(t.Context(), "stripe", id); err != nil {
			t.Fatalf("Redrive of %s: %v", id, err)
		}
		if err := q.Redrive(t.Context(), "stripe", id); err == nil {
			t.Errorf("second Redrive of %s: got no error", id)
		}
	}
	if err := q.Redrive(t.Context(), "stripe", "never sent"); err == nil {
		t.Errorf("Redrive of an unknown event: got no error")
	}
	if letters := deadLetters(t, q); len(letters) != 0 {
		t.Errorf("letters after the redrive: %v", letters)
	}
	for _, want := range []struct {
		id      string
		attempt int
	}{{"died", 1}, {"born dead", 1}} {
		lease := receive(t, q, 1)[0]
		if lease.EventID != want.id || lease.Attempt != want.attempt {
			t.Errorf("redriven: got %s attempt %d, want %+v", lease.EventID, lease.Attempt, want)
		}
		settle(t, q, lease, queue.Dead("again"))
	}
	if letters := deadLetters(t, q); len(letters) != 2 || letters[0].Reason != "again" {
		t.Errorf("letters: got %v, want both again", letters)
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Dead != 2 || d.Waiting+d.Leased+d.Done != 0 {
		t.Errorf("depth: got %+v, error %v; want 2 dead", d, err)
	}
}

func deadLetters(t testing.TB, q *nats.Queue) []queue.DeadLetter {
	t.Helper()
	var letters []queue.DeadLetter
	err := q.DeadLetters(t.Context(), func(d queue.DeadLetter) error {
		letters = append(letters, d)
		return nil
	})
	if err != nil {
		t.Fatalf("DeadLetters: %v", err)
	}
	return letters
}

// TestStaleDelivery: what a consumer says comes from what it remembers, which after a crash may be old. It is made to forget everything, and delivers all
// jobs once more; none may be leased again but those whose turn it is.
func TestStaleDelivery(t *testing.T) {
	name := namespace()
	q := open(t, nats.Options{Namespace: name, Lease: time.Minute})
	enqueue(t, q, "done", "dead", "delayed", "leased", "given back", "untouched")
	leases := receive(t, q, 5)
	settle(t, q, leases[0], queue.Done())
	settle(t, q, leases[1], queue.Dead("d"))
	settle(t, q, leases[2], queue.Retry(time.Hour, "r"))
	settle(t, q, leases[4], queue.Retry(0, "r"))
	conn := connect(t, address(t))
	request(t, conn, "$JS.API.CONSUMER.DELETE.FP_"+name+".L", "")
	again := open(t, nats.Options{Namespace: name})
	got := map[string]int{}
	var last queue.Lease
	for range 2 {
		lease := receive(t, again, 1)[0]
		got[lease.EventID] = lease.Attempt
		if lease.EventID == "given back" {
			last = lease
			continue
		}
		settle(t, again, lease, queue.Done())
	}
	if got["untouched"] != 1 || got["given back"] != 2 || len(got) != 2 {
		t.Errorf("leased after the consumer forgot everything: %v, want untouched for the first time and given back for the second", got)
	}
	receiveNone(t, again)
	// Three jobs are not finished, and one message stands for each: an older one must not come for ever beside it.
	waitFor(t, "3 unacknowledged messages", func() bool {
		var info struct {
			Unacknowledged int `json:"num_ack_pending"`
		}
		return json.Unmarshal(request(t, conn, "$JS.API.CONSUMER.INFO.FP_"+name+".L", ""), &info) == nil && info.Unacknowledged == 3
	})
	settle(t, again, last, queue.Done())
	settle(t, q, leases[3], queue.Done())
	d, err := q.Depth(t.Context())
	if err != nil || d.Done != 4 || d.Dead != 1 || d.Waiting != 1 || d.Leased != 0 {
		t.Errorf("depth: got %+v, error %v; want 4 done, 1 dead, 1 waiting", d, err)
	}
}

// TestManyWriters: more handles were open, ever, than the server gives answers to one question.
func TestManyWriters(t *testing.T) {
	name := namespace()
	q := open(t, nats.Options{Namespace: name})
	enqueue(t, q, "mine")
	conn := connect(t, address(t))
	const others = 1100
	for i := range others {
		letter := "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[i%32]
		if err := conn.Publish(fmt.Sprintf("fp.%s.c.%c.%c%d", name, letter, letter, i), []byte(`{"":{"stored":1,"done":1}}`)); err != nil {
			t.Fatal(err)
		}
	}
	request(t, conn, fmt.Sprintf("fp.%s.c.A.last", name), `{"":{"stored":2,"dead":2}}`)
	d, err := q.Depth(t.Context())
	if err != nil || d.Waiting != 1 || d.Done != others || d.Dead != 2 {
		t.Errorf("depth over %d writers: got %+v, error %v", others+2, d, err)
	}
}
