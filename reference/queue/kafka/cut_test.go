package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
	"floodproof/reference/queue/server"
)

// cutLog is a broker that does not sync, whose log can be put back to what it was: what a loss of power leaves of a log that is only appended to is its beginning.
type cutLog struct {
	server *server.Server
	dir    string
	kept   string // a copy of the records
}

func newCutLog(t *testing.T) *cutLog {
	t.Helper()
	dir := t.TempDir()
	s, err := server.Start(t.Context(), kind(t), dir, map[string]string{"storage": "nosync"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	found, err := filepath.Glob(filepath.Join(dir, "*", "records"))
	if err != nil || len(found) != 1 {
		found = []string{filepath.Join(dir, "records")}
	}
	return &cutLog{server: s, dir: found[0], kept: filepath.Join(t.TempDir(), "kept")}
}

// keep remembers what is in the log, which nobody may be writing to.
func (c *cutLog) keep(t *testing.T) {
	t.Helper()
	if err := os.CopyFS(c.kept, os.DirFS(c.dir)); err != nil {
		t.Fatalf("copy the records: %v", err)
	}
}

// cut kills the broker and starts it with what was kept.
func (c *cutLog) cut(t *testing.T) {
	t.Helper()
	if err := c.server.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(c.dir, os.DirFS(c.kept)); err != nil {
		t.Fatalf("put the records back: %v", err)
	}
	if err := c.server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// collect receives until all of want have come, and settles nothing. One Receive may say that the log lost something.
func collect(t *testing.T, q *kafka.Queue, want map[string]int) (leases []queue.Lease, told []error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := make(map[string]int)
	for len(leases) < len(want) {
		some, err := q.Receive(ctx, "", 100)
		if ctx.Err() != nil {
			t.Fatalf("received %v, want %v; errors %v", got, want, told)
		}
		if err != nil {
			told = append(told, err)
			continue
		}
		for _, l := range some {
			got[l.EventID]++
		}
		leases = append(leases, some...)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("events received (-want +got):\n%s", diff)
	}
	return leases, told
}

func numbered(prefix string, n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%02d", prefix, i)
	}
	return ids
}

func once(ids ...string) map[string]int {
	all := make(map[string]int, len(ids))
	for _, id := range ids {
		all[id] = 1
	}
	return all
}

// TestLogIsCut: a broker that does not sync loses its power, and what it acknowledged last. That is what it may lose: what was stored before, and what is stored afterwards, comes, to
// handles too that had read more than there is now. And a lease of what is gone ends no other job's, although both have the same numbers.
func TestLogIsCut(t *testing.T) {
	log := newCutLog(t)
	opts := kafka.Options{Brokers: log.server.Address(), Namespace: "cut", Lease: time.Minute}
	sender, worker := open(t, opts), open(t, opts)
	kept, gone, later := numbered("kept", 5), numbered("gone", 5), numbered("later", 10)
	enqueue(t, sender, kept...)
	if _, err := worker.Depth(t.Context()); err != nil { // and it reads
		t.Fatal(err)
	}
	log.keep(t)
	enqueue(t, sender, gone...)
	before, told := collect(t, worker, once(append(kept, gone...)...))
	if len(told) > 0 {
		t.Fatalf("Receive before the cut: %v", told)
	}
	log.cut(t)
	enqueue(t, sender, later...)

	after, told := collect(t, worker, once(append(kept, later...)...))
	if len(told) != 1 || !strings.Contains(told[0].Error(), "lost records") {
		t.Errorf("Receive told of %v, want one error about lost records", told)
	}
	same := 0
	for _, old := range before {
		if !strings.HasPrefix(old.EventID, "gone") {
			continue
		}
		for _, l := range after {
			if l.ID == old.ID && l.Token == old.Token {
				same++
			}
		}
		if err := worker.Settle(t.Context(), old, queue.Done()); !errors.Is(err, queue.ErrLeaseLost) {
			t.Errorf("Settle of %s, which the log lost: got error %v, want %v", old.EventID, err, queue.ErrLeaseLost)
		}
	}
	if same == 0 {
		t.Error("no lease has the numbers of one that is gone: nothing was shown")
	}
	for _, l := range after {
		if err := worker.Settle(t.Context(), l, queue.Done()); err != nil {
			t.Errorf("Settle of %s: %v", l.EventID, err)
		}
	}
}

// TestLogIsCutAndGrows: the log is longer again than it was when a handle finds back to it. The broker answers its next question as if nothing had happened.
func TestLogIsCutAndGrows(t *testing.T) {
	log := newCutLog(t)
	opts := kafka.Options{Brokers: log.server.Address(), Namespace: "grown", Lease: time.Minute}
	sender := open(t, opts)
	dial := newGate()
	opts.Client = []kgo.Opt{kgo.Dialer(dial.dial)}
	worker := open(t, opts)
	kept, gone, later := numbered("kept", 2), numbered("gone", 5), numbered("later", 20)
	enqueue(t, sender, kept...)
	if _, err := worker.Depth(t.Context()); err != nil {
		t.Fatal(err)
	}
	log.keep(t)
	enqueue(t, sender, gone...)
	collect(t, worker, once(append(kept, gone...)...))
	dial.close()
	log.cut(t)
	enqueue(t, sender, later...) // a record each: more than were lost
	dial.open()
	_, told := collect(t, worker, once(append(kept, later...)...))
	if len(told) != 1 || !strings.Contains(told[0].Error(), "lost records") {
		t.Errorf("Receive told of %v, want one error about lost records", told)
	}
}

// gate is a dialer that can be made to wait.
type gate struct{ wait chan chan struct{} }

func newGate() *gate {
	g := &gate{wait: make(chan chan struct{}, 1)}
	opened := make(chan struct{})
	close(opened)
	g.wait <- opened
	return g
}

func (g *gate) close() {
	<-g.wait
	g.wait <- make(chan struct{})
}

func (g *gate) open() {
	w := <-g.wait
	close(w)
	g.wait <- w
}

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w := <-g.wait
	g.wait <- w
	select {
	case <-w:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}
