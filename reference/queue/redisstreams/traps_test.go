package redisstreams_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/redisstreams"
)

// TestNothingStaysBehind sends jobs through everything that can become of them. Afterwards the stream, its pending entries, the sorted sets and the
// payloads are gone; only that the events are known is left. (Pending entries that are never acknowledged, consumers that are never deleted and entries that are
// deleted while they are pending are how queues on streams fill up.)
func TestNothingStaysBehind(t *testing.T) {
	opts := onShared(t)
	short := opts
	short.Lease = 50 * time.Millisecond
	q, lapsing := open(t, opts), open(t, short)
	enqueue(t, q, "a", "b", "c", "d")
	receive(t, lapsing, 4) // and nobody settles
	leases := receive(t, q, 4)
	for _, lease := range leases {
		if err := q.Finish(t.Context(), lease, "first"); err != nil {
			t.Fatalf("Finish: %v", err)
		}
	}
	settle(t, q, leases[0], queue.Done())
	settle(t, q, leases[1], queue.Retry(0, "now"))
	settle(t, q, leases[2], queue.Retry(time.Millisecond, "soon"))
	settle(t, q, leases[3], queue.Dead("hopeless"))
	if err := q.Redrive(t.Context(), "stripe", leases[3].EventID); err != nil {
		t.Fatalf("Redrive: %v", err)
	}
	if err := q.Redrive(t.Context(), "stripe", leases[3].EventID); err == nil {
		t.Error("Redrive of a job that is not dead: got no error")
	}
	for _, lease := range receive(t, q, 3) {
		want := 3
		if lease.EventID == leases[3].EventID {
			want = 1 // it was redriven
		}
		if lease.Attempt != want {
			t.Errorf("%s has attempt %d, want %d", lease.EventID, lease.Attempt, want)
		}
		if steps, err := q.Steps(t.Context(), lease); err != nil || len(steps) != 1 {
			t.Errorf("steps of %s: got %q, error %v", lease.EventID, steps, err)
		}
		settle(t, q, lease, queue.Done())
	}
	c := client(t, opts.Address)
	prefix := "{" + opts.Namespace + "}:"
	keys, err := c.Keys(t.Context(), prefix+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	want := []string{"counts", "dead", "job:6:stripe:a", "job:6:stripe:b", "job:6:stripe:c", "job:6:stripe:d", "lanes", "line:"}
	for i := range want {
		want[i] = prefix + want[i]
	}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("keys that are left (-want +got):\n%s", diff)
	}
	groups, err := c.XInfoGroups(t.Context(), prefix+"line:").Result()
	if err != nil || len(groups) != 1 || groups[0].Pending != 0 || groups[0].Consumers != 1 {
		t.Errorf("groups: got %+v, error %v; want one with one consumer and nothing pending", groups, err)
	}
	if length := c.XLen(t.Context(), prefix+"line:").Val() + c.XLen(t.Context(), prefix+"dead").Val(); length != 0 {
		t.Errorf("%d entries are left in the streams", length)
	}
	if diff := cmp.Diff(map[string]string{"body": "", "state": "done"}, c.HGetAll(t.Context(), prefix+"job:6:stripe:a").Val()); diff != "" {
		t.Errorf("what is left of a finished job (-want +got):\n%s", diff)
	}
}

// TestLostGroup deletes the consumer group while jobs are out. Without care the line would stand still for ever (NOGROUP), or everything in it would be given out again.
func TestLostGroup(t *testing.T) {
	opts := onShared(t)
	q := open(t, opts)
	enqueue(t, q, "a", "b", "c")
	out := receive(t, q, 1)[0]
	c := client(t, opts.Address)
	line := "{" + opts.Namespace + "}:line:"
	if n, err := c.XGroupDestroy(t.Context(), line, "workers").Result(); err != nil || n != 1 {
		t.Fatalf("destroy the group: %d, %v", n, err)
	}
	enqueue(t, q, "d")
	for i, lease := range receive(t, q, 3) {
		if want := []string{"b", "c", "d"}[i]; lease.EventID != want || lease.Attempt != 1 {
			t.Errorf("came %s with attempt %d, want %s and 1", lease.EventID, lease.Attempt, want)
		}
		settle(t, q, lease, queue.Done())
	}
	receiveNone(t, q)
	settle(t, q, out, queue.Done())
	if n := c.XLen(t.Context(), line).Val(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}

// TestDedupWindow: with a window a finished event is forgotten, and no longer counted, after that; one that is not finished is known however old it is.
func TestDedupWindow(t *testing.T) {
	opts := onShared(t)
	opts.DedupWindow = 2 * time.Second
	q := open(t, opts)
	if got := q.Claims().DedupWindow; got != 2*time.Second {
		t.Errorf("claimed window: got %v, want two seconds", got)
	}
	enqueue(t, q, "finished", "dead", "out")
	leases := receive(t, q, 3)
	settle(t, q, leases[1], queue.Dead("hopeless"))
	settle(t, q, leases[0], queue.Done())
	ended := time.Now()
	enqueue(t, q, "finished")
	receiveNone(t, q)
	if d, err := q.Depth(t.Context()); err != nil || d.Done != 1 || d.Dead != 1 || d.Leased != 1 {
		t.Errorf("Depth: got %+v, error %v", d, err)
	}
	pass(t, ended.Add(2100*time.Millisecond))
	if d, err := q.Depth(t.Context()); err != nil || d.Done != 0 || d.Dead != 1 || d.Leased != 1 {
		t.Errorf("Depth after the window: got %+v, error %v", d, err)
	}
	enqueue(t, q, "finished", "dead", "out")
	if lease := receive(t, q, 1)[0]; lease.EventID != "finished" || lease.Attempt != 1 {
		t.Errorf("after the window came %s with attempt %d", lease.EventID, lease.Attempt)
	}
	receiveNone(t, q)
}

// TestForgottenScripts makes the server forget the scripts between any two calls.
func TestForgottenScripts(t *testing.T) {
	s := startServer(t, nil)
	q := open(t, redisstreams.Options{Address: s.Address()})
	c := client(t, s.Address())
	forget := func() {
		t.Helper()
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	forget()
	enqueue(t, q, "a")
	forget()
	lease := receive(t, q, 1)[0]
	forget()
	settle(t, q, lease, queue.Done())
	forget()
	if d, err := q.Depth(t.Context()); err != nil || d.Done != 1 {
		t.Errorf("Depth: got %+v, error %v", d, err)
	}
}

// TestOutOfMemory fills the server up. Enqueue fails, for all of its jobs; what was stored stays, and working on it makes room.
func TestOutOfMemory(t *testing.T) {
	s := startServer(t, map[string]string{"maxmemory": "8mb"})
	q := open(t, redisstreams.Options{Address: s.Address()})
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(id string) queue.Job {
		j := job(id)
		j.Payload = make([]byte, 100_000)
		for i := range j.Payload {
			j.Payload[i] = byte(random.Uint32())
		}
		return j
	}
	var stored []string
	for i := 0; ; i++ {
		one, two := noise(fmt.Sprintf("%03d-one", i)), noise(fmt.Sprintf("%03d-two", i))
		err := q.Enqueue(t.Context(), one, two)
		if err != nil {
			if !strings.Contains(err.Error(), "OOM") {
				t.Errorf("Enqueue: got error %v, want that of the server", err)
			}
			break
		}
		stored = append(stored, one.EventID, two.EventID)
		if len(stored) > 1000 {
			t.Fatal("the server has no limit")
		}
	}
	leases := receive(t, q, 1)
	extended, err := q.Extend(t.Context(), leases[0], time.Hour)
	if err != nil {
		t.Errorf("Extend without memory: %v", err)
	}
	if err := q.Finish(t.Context(), extended, "a step"); err != nil {
		t.Errorf("Finish without memory: %v", err)
	}
	settle(t, q, extended, queue.Retry(0, "without memory"))
	var came []string
	for _, lease := range receive(t, q, len(stored)) {
		came = append(came, lease.EventID)
		settle(t, q, lease, queue.Done())
	}
	slices.Sort(came)
	if diff := cmp.Diff(stored, came); diff != "" {
		t.Errorf("events (-stored +came):\n%s", diff)
	}
	enqueue(t, q, "there is room again")
}

// TestBusyScript has somebody else's script keep the server busy. Calls fail meanwhile, and work afterwards.
func TestBusyScript(t *testing.T) {
	s := startServer(t, map[string]string{"lua-time-limit": "20"})
	q := open(t, redisstreams.Options{Address: s.Address()})
	c := client(t, s.Address())
	ended := make(chan error, 1)
	go func() { ended <- c.Eval(t.Context(), "while true do end", nil).Err() }()
	for { // until the server says so
		err := c.Ping(t.Context()).Err()
		if err != nil && strings.HasPrefix(err.Error(), "BUSY") {
			break
		}
		if !again(t.Context()) {
			t.Fatal(err)
		}
	}
	if err := q.Enqueue(t.Context(), job("busy")); err == nil || !strings.Contains(err.Error(), "BUSY") {
		t.Errorf("Enqueue: got error %v, want that of the server", err)
	}
	if err := c.ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the endless script ended by itself")
	}
	enqueue(t, q, "busy")
	settle(t, q, receive(t, q, 1)[0], queue.Done())
	receiveNone(t, q)
}

// TestOrderWithoutALook: jobs whose lease or delay is over stand before one that was enqueued after that, although nobody looked in between.
func TestOrderWithoutALook(t *testing.T) {
	opts := onShared(t)
	short := opts
	short.Lease = 50 * time.Millisecond
	q, lapsing := open(t, opts), open(t, short)
	enqueue(t, q, "lapsed", "delayed")
	receive(t, lapsing, 1)
	settle(t, q, receive(t, q, 1)[0], queue.Retry(200*time.Millisecond, "later"))
	pass(t, time.Now().Add(250*time.Millisecond))
	if d, err := q.Depth(t.Context()); err != nil || d.Waiting != 2 || d.Leased != 0 || d.Oldest < 200*time.Millisecond {
		t.Errorf("Depth: got %+v, error %v; want two that wait, for 200ms at least", d, err)
	}
	enqueue(t, q, "new")
	for i, lease := range receive(t, q, 3) {
		if want := []string{"lapsed", "delayed", "new"}[i]; lease.EventID != want {
			t.Errorf("place %d: got %s, want %s", i, lease.EventID, want)
		}
		settle(t, q, lease, queue.Done())
	}
}

// TestClaimIsBounded: a Receive of many large jobs takes a part of them.
func TestClaimIsBounded(t *testing.T) {
	q := open(t, onShared(t))
	for i := range 12 {
		j := job(fmt.Sprint("large-", i))
		j.Payload = make([]byte, 1<<20)
		random := rand.New(rand.NewPCG(uint64(i), 1))
		for k := range j.Payload {
			j.Payload[k] = byte(random.Uint32())
		}
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
	for left := 12; left > 0; {
		leases, err := q.Receive(t.Context(), "", 100)
		if err != nil || len(leases) > 5 {
			t.Fatalf("Receive of jobs of 1 MB: got %d leases and error %v, want about 4 MB", len(leases), err)
		}
		left -= len(leases)
		for _, lease := range leases {
			settle(t, q, lease, queue.Done())
		}
	}
}

// TestDamagedEvent breaks what is stored. The job becomes a dead letter, and those behind it go on.
func TestDamagedEvent(t *testing.T) {
	opts := onShared(t)
	q := open(t, opts)
	enqueue(t, q, "broken", "deleted", "whole")
	c := client(t, opts.Address)
	prefix := "{" + opts.Namespace + "}:job:6:stripe:"
	if err := errors.Join(c.HSet(t.Context(), prefix+"broken", "body", "garbage").Err(), c.Del(t.Context(), prefix+"deleted").Err()); err != nil {
		t.Fatal(err)
	}
	lease := receive(t, q, 1)[0]
	if lease.EventID != "whole" {
		t.Errorf("came %s, want the whole one", lease.EventID)
	}
	settle(t, q, lease, queue.Done())
	receiveNone(t, q)
	reasons := make(map[string]string)
	err := q.DeadLetters(t.Context(), func(d queue.DeadLetter) error {
		reasons[d.EventID] = d.Reason
		return nil
	})
	if err != nil || len(reasons) != 1 || !strings.Contains(reasons["broken"], "cannot be read") {
		t.Errorf("dead letters: got %v, error %v", reasons, err)
	}
}

// TestDeletedJob: a job that somebody deletes while it is leased holds up nobody else.
func TestDeletedJob(t *testing.T) {
	opts := onShared(t)
	opts.Lease = 50 * time.Millisecond
	q := open(t, opts)
	enqueue(t, q, "deleted", "behind")
	lease := receive(t, q, 1)[0]
	if err := client(t, opts.Address).Del(t.Context(), "{"+opts.Namespace+"}:job:6:stripe:deleted").Err(); err != nil {
		t.Fatal(err)
	}
	if err := q.Settle(t.Context(), lease, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
		t.Errorf("Settle of a deleted job: got error %v, want %v", err, queue.ErrLeaseLost)
	}
	pass(t, lease.Deadline)
	if lease := receive(t, q, 1)[0]; lease.EventID != "behind" {
		t.Errorf("came %s, want the one behind the deleted one", lease.EventID)
	}
}

// TestNamesDoNotRunTogether: two namespaces know nothing of each other, and neither do two providers whose names and ids run together.
func TestNamesDoNotRunTogether(t *testing.T) {
	opts := onShared(t)
	q := open(t, opts)
	other := opts
	other.Namespace += "x"
	jobs := []queue.Job{
		{Provider: "a", EventID: "b:c"}, {Provider: "a:b", EventID: "c"}, {Provider: "1:a", EventID: "b:c"}, {Provider: "a\x00", EventID: "\xff\n"},
	}
	for _, q := range []*redisstreams.Queue{q, open(t, other)} {
		if err := q.Enqueue(t.Context(), jobs...); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
		got := make(map[string]bool)
		for _, lease := range receive(t, q, len(jobs)) {
			got[lease.Provider+"|"+lease.EventID] = true
			settle(t, q, lease, queue.Done())
		}
		if len(got) != len(jobs) {
			t.Errorf("came %q", slices.Collect(maps.Keys(got)))
		}
	}
}

// TestDeadLettersInPages: nothing in the queue trims, and a listing goes through all pages.
func TestDeadLettersInPages(t *testing.T) {
	q := open(t, onShared(t))
	const n = 1000
	jobs := make([]queue.Job, n)
	for i := range jobs {
		jobs[i] = job(fmt.Sprintf("%04d", i))
		jobs[i].DeadOnArrival = "malformed"
		jobs[i].Payload = bytes.Repeat([]byte{'x'}, i)
	}
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
	i := 0
	err := q.DeadLetters(t.Context(), func(d queue.DeadLetter) error {
		if d.EventID != jobs[i].EventID || len(d.Payload) != i || d.Attempts != 0 {
			return fmt.Errorf("letter %d is %s with %d bytes and %d attempts", i, d.EventID, len(d.Payload), d.Attempts)
		}
		i++
		return nil
	})
	if err != nil || i != n {
		t.Errorf("DeadLetters: got %d letters, error %v; want %d", i, err, n)
	}
	if err := q.Redrive(t.Context(), "stripe", "0500"); err != nil {
		t.Fatalf("Redrive: %v", err)
	}
	if lease := receive(t, q, 1)[0]; lease.EventID != "0500" || lease.Attempt != 1 {
		t.Errorf("redriven: got %s with attempt %d, want 0500 and 1", lease.EventID, lease.Attempt)
	}
}

// TestManyLanesWait has more lanes waited for than there are connections; each is rung for its own job.
func TestManyLanesWait(t *testing.T) {
	q := open(t, onShared(t))
	const lanes = 100
	came := make(chan error, lanes)
	for i := range lanes {
		go func() {
			name := fmt.Sprint("lane-", i)
			leases, err := q.Receive(t.Context(), name, 1)
			if err == nil && leases[0].Lane != name {
				err = fmt.Errorf("lane %s gave a job of %s", name, leases[0].Lane)
			}
			came <- err
		}()
	}
	for i := range lanes {
		j := job(fmt.Sprint(i))
		j.Lane = fmt.Sprint("lane-", i)
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Fatalf("Enqueue: %v", err)
		}
	}
	for range lanes {
		if err := <-came; err != nil {
			t.Error(err)
		}
	}
}
