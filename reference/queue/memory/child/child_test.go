package child

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"-port=0"}, {"-port=70000"}, {"-unknown"}} {
		var out, complaint bytes.Buffer
		if code := run(args, &out, &complaint); code != 2 || complaint.Len() == 0 {
			t.Errorf("%q: got exit code %d and %q, want 2 and a reason", args, code, complaint.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, complaint bytes.Buffer
	if code := run([]string{"-version"}, &out, &complaint); code != 0 || strings.TrimSpace(out.String()) != Version() {
		t.Errorf("-version: got exit code %d, %q, %q", code, out.String(), complaint.String())
	}
}

func TestWithParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(7)
		ctx, stop := withParent(t.Context(), func() int { return int(parent.Load()) }, time.Second)
		defer stop()
		<-time.After(10 * time.Second) // of the bubble's clock
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended although its parent is there")
		}
		parent.Store(1)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("goes on as an orphan")
		}
	})
}

// TestLeaseWaits: a receiver that waits gets what is enqueued, what was delayed when that is due, and what lapses when it does, at that very instant.
func TestLeaseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBroker(time.Now).space("x")
		ask := &state.Command{Op: state.Lease, Max: 1, For: time.Minute}
		for i, wait := range []time.Duration{time.Second, time.Hour, time.Minute} {
			begin := time.Now()
			if i == 0 {
				time.AfterFunc(wait, func() { s.apply(&state.Command{Op: state.Enqueue, Jobs: []queue.Job{{EventID: "a"}}}) })
			}
			r := s.lease(t.Context(), ask)
			if took := time.Since(begin); took != wait || len(r.Leases) != 1 {
				t.Fatalf("wait %d: got %d leases after %v, want one after %v", i, len(r.Leases), took, wait)
			}
			if i == 0 {
				s.apply(&state.Command{Op: state.Retry, ID: r.Leases[0].ID, Token: r.Leases[0].Token, For: time.Hour})
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := s.lease(ctx, ask); len(r.Leases) != 0 {
			t.Error("leased after its context ended")
		}
	})
}

// TestServeStrangers: who does not greet is sent away, and the broker ends with its context.
func TestServeStrangers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- newBroker(time.Now).serve(ctx, l) }()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("a stranger got %d bytes", n)
	}
	_ = conn.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}
