package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos/proxy"
)

// pair is a connection through a proxy, and its end at the server.
func pair(t *testing.T) (p *proxy.Proxy, client, far net.Conn) {
	t.Helper()
	s := newServer(t, nil)
	p = newProxy(t, proxy.Options{Upstream: s.addr})
	client = dial(t, p.Addr())
	return p, client, s.next(t)
}

func TestPassesOn(t *testing.T) {
	p, client, far := pair(t)
	send(t, client, "hello")
	want(t, far, "hello")
	send(t, far, "hi")
	want(t, client, "hi")
	until(t, "the books are kept, which is after the write", func() bool { s := p.Stats(); return s.Up == 5 && s.Down == 2 })
	if diff := cmp.Diff(proxy.Stats{Connections: 1, Open: 1, Up: 5, Down: 2}, p.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestPassesOnOverUnixSockets(t *testing.T) {
	dir := t.TempDir()
	s := serveOn(t, "unix", filepath.Join(dir, "up"), echo)
	p := newProxy(t, proxy.Options{Upstream: "unix:" + s.addr, Listen: "unix:" + filepath.Join(dir, "down")})
	c := dial(t, p.Addr())
	send(t, c, "over")
	want(t, c, "over")
	lift := impose(t, p, proxy.Condition{Direction: proxy.Down, New: proxy.Refuse, Cut: &proxy.Cut{Byte: 2}})
	send(t, c, "abcd")
	wantEnd(t, c, "ab", false)
	lift()
	c = dial(t, p.Addr())
	send(t, c, "again")
	want(t, c, "again")
}

func TestEndsArePassedOnAsTheyWere(t *testing.T) {
	conditions := map[string]*proxy.Condition{
		"plain": nil, "late": {Delay: 20 * time.Millisecond, Jitter: 20 * time.Millisecond}, "sliced": {Slice: 1}, "slow": {Rate: 1000},
	}
	for name, condition := range conditions {
		t.Run(name, func(t *testing.T) {
			p, client, far := pair(t)
			if condition != nil {
				impose(t, p, *condition)
			}
			send(t, client, "question")
			if err := client.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			wantEnd(t, far, "question", false)
			// The other direction is still open, as behind `curl --data-binary @-` or netcat.
			send(t, far, "answer")
			want(t, client, "answer")
			if err := far.(*net.TCPConn).SetLinger(0); err != nil {
				t.Fatal(err)
			}
			far.Close()
			wantEnd(t, client, "", true)
			until(t, "the connection is forgotten", func() bool { return p.Stats().Open == 0 })
		})
	}
}

func TestClientResetReachesTheServer(t *testing.T) {
	_, client, far := pair(t)
	if err := client.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	client.Close()
	wantEnd(t, far, "", true)
}

func TestNoUpstream(t *testing.T) {
	refusing := newProxy(t, proxy.Options{Upstream: "127.0.0.1:1"})
	impose(t, refusing, proxy.Condition{New: proxy.Refuse})
	dead := newProxy(t, proxy.Options{Upstream: refusing.Addr()})
	wantReset(t, dead)
	if got := dead.Stats().Unreachable; got != 1 {
		t.Errorf("unreachable: got %d, want 1", got)
	}
}

func TestStallLosesNothing(t *testing.T) {
	for _, d := range []proxy.Direction{proxy.Up, proxy.Down} {
		t.Run(d.String(), func(t *testing.T) {
			p, client, far := pair(t)
			from, to := client, far
			if d == proxy.Down {
				from, to = far, client
			}
			lift := impose(t, p, proxy.Condition{Direction: d, Stall: true})
			send(t, from, "held")
			wantSilence(t, to)
			send(t, to, "the other way") // is not concerned
			want(t, from, "the other way")
			if met := lift(); met != (proxy.Met{Connections: 1, Bytes: 4}) {
				t.Errorf("met %+v, want one connection and four bytes", met)
			}
			want(t, to, "held")
		})
	}
}

func TestStallHoldsTheEndBackToo(t *testing.T) {
	p, client, far := pair(t)
	lift := impose(t, p, proxy.Condition{Stall: true})
	send(t, client, "last words")
	client.Close()
	wantSilence(t, far)
	lift()
	wantEnd(t, far, "last words", false)
}

// TestMemoryIsBounded: a stalled connection takes the buffer and what the kernels hold, and then the sender waits.
func TestMemoryIsBounded(t *testing.T) {
	s := newServer(t, nil)
	p := newProxy(t, proxy.Options{Upstream: s.addr, Buffer: 64 << 10})
	client := dial(t, p.Addr())
	far := s.next(t)
	lift := impose(t, p, proxy.Condition{Direction: proxy.Up, Stall: true})
	sent, chunk := 0, make([]byte, 64<<10)
	for {
		_ = client.SetWriteDeadline(time.Now().Add(moment))
		n, err := client.Write(chunk)
		sent += n
		if err != nil {
			break
		}
	}
	if met := lift(); met.Bytes > 64<<10 {
		t.Errorf("%d bytes were kept of %d, want at most the buffer of %d", met.Bytes, sent, 64<<10)
	}
	client.Close()
	_ = far.SetReadDeadline(time.Now().Add(patience))
	if n, err := io.Copy(io.Discard, far); int(n) != sent || err != nil {
		t.Errorf("got %d bytes and error %v, want %d", n, err, sent)
	}
}

func TestBlackHoleSwallowsAndResetsAtTheLift(t *testing.T) {
	s := newServer(t, nil)
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	victim := dial(t, p.Addr())
	far := s.next(t)
	bystander := dial(t, p.Addr())
	farBystander := s.next(t)
	lift := impose(t, p, proxy.Condition{Direction: proxy.Up, BlackHole: true})
	send(t, victim, "gone")
	wantSilence(t, far)
	if met := lift(); met != (proxy.Met{Connections: 1, Bytes: 4}) {
		t.Errorf("met %+v, want one connection and four bytes", met)
	}
	wantEnd(t, victim, "", true)
	wantEnd(t, far, "", true)
	send(t, bystander, "still here")
	want(t, farBystander, "still here")
}

func TestReset(t *testing.T) {
	p, client, far := pair(t)
	send(t, client, "x") // The server's kernel may accept before the proxy knows; this waits until it does.
	want(t, far, "x")
	lift := impose(t, p, proxy.Condition{Reset: true, New: proxy.ResetNew})
	wantEnd(t, client, "", true)
	wantEnd(t, far, "", true)
	wantReset(t, p)
	if met := lift(); met.Connections != 2 {
		t.Errorf("met %+v, want two connections", met)
	}
}

func TestHang(t *testing.T) {
	p, client, far := pair(t)
	lift := impose(t, p, proxy.Condition{New: proxy.Hang})
	late := dial(t, p.Addr())
	send(t, late, "anybody there?")
	wantSilence(t, late)
	send(t, client, "as ever") // The existing connection is not concerned.
	want(t, far, "as ever")
	if met := lift(); met.Connections != 1 {
		t.Errorf("met %+v, want one connection", met)
	}
}

func TestHangingConnectionsGoOnAfterTheLift(t *testing.T) {
	s := newServer(t, echo)
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	lift := impose(t, p, proxy.Condition{New: proxy.Hang})
	c := dial(t, p.Addr())
	send(t, c, "patience")
	lift()
	want(t, c, "patience")
}

func TestRefuseClosesThePortAndOpensItAgain(t *testing.T) {
	s := newServer(t, echo)
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	c := dial(t, p.Addr())
	send(t, c, "before")
	want(t, c, "before")
	for range 3 {
		lift := impose(t, p, proxy.Condition{New: proxy.Refuse})
		var d net.Dialer
		if _, err := d.DialContext(t.Context(), "tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("dial: got error %v, want refused", err)
		}
		lift()
		again := dial(t, p.Addr())
		send(t, again, "after")
		want(t, again, "after")
	}
	send(t, c, "all along")
	want(t, c, "all along")
}

func TestHalfOpen(t *testing.T) {
	for _, d := range []proxy.Direction{proxy.Up, proxy.Down} {
		t.Run(d.String(), func(t *testing.T) {
			s := newServer(t, nil)
			p := newProxy(t, proxy.Options{Upstream: s.addr})
			client := dial(t, p.Addr())
			far := s.next(t)
			vanished, left := client, far
			if d == proxy.Down {
				vanished, left = far, client
			}
			lift := impose(t, p, proxy.Condition{Direction: d, HalfOpen: true})
			wantEnd(t, vanished, "", true)
			send(t, left, strings.Repeat("into the void ", 1000))
			wantSilence(t, left)
			c := dial(t, p.Addr()) // What comes later is not concerned.
			send(t, c, "new")
			want(t, s.next(t), "new")
			if met := lift(); met.Connections != 1 {
				t.Errorf("met %+v, want one connection", met)
			}
			wantEnd(t, left, "", true)
		})
	}
}

// TestDelay asks for the least time only: a busy machine may always be slower.
func TestDelay(t *testing.T) {
	s := newServer(t, echo)
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	c := dial(t, p.Addr())
	lift := impose(t, p, proxy.Condition{Direction: proxy.Up, Delay: 60 * time.Millisecond, Jitter: 10 * time.Millisecond})
	impose(t, p, proxy.Condition{Direction: proxy.Down, Delay: 30 * time.Millisecond})
	start := time.Now()
	send(t, c, "late")
	want(t, c, "late")
	if took := time.Since(start); took < 80*time.Millisecond {
		t.Errorf("took %v, want at least 50ms up and 30ms down", took)
	}
	lift()
	start = time.Now()
	send(t, c, "less late")
	want(t, c, "less late")
	if took := time.Since(start); took < 30*time.Millisecond {
		t.Errorf("took %v with the other condition in place, want at least 30ms", took)
	}
}

// TestLiftReleasesWhatIsLate: nothing waits for the end of a delay that is no more.
func TestLiftReleasesWhatIsLate(t *testing.T) {
	p, client, far := pair(t)
	lift := impose(t, p, proxy.Condition{Delay: time.Hour})
	send(t, client, "next year")
	wantSilence(t, far)
	lift()
	want(t, far, "next year")
}

func TestThrottleAndSlice(t *testing.T) {
	tests := map[string]struct {
		condition proxy.Condition
		least     time.Duration
	}{
		"rate":            {proxy.Condition{Rate: 10_000}, 80 * time.Millisecond}, // 1000 bytes, less the first portion and what is made up for
		"slice and pause": {proxy.Condition{Slice: 100, Pause: 10 * time.Millisecond}, 90 * time.Millisecond},
		"smallest slice":  {proxy.Condition{Slice: 1}, 0},
		"least rate":      {proxy.Condition{Rate: 1 << 40}, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, client, far := pair(t)
			tt.condition.Direction = proxy.Up
			impose(t, p, tt.condition)
			text := strings.Repeat("0123456789", 100)
			start := time.Now()
			send(t, client, text)
			want(t, far, text)
			if took := time.Since(start); took < tt.least {
				t.Errorf("took %v, want at least %v", took, tt.least)
			}
		})
	}
}

func TestBadConditions(t *testing.T) {
	p := newProxy(t, proxy.Options{Upstream: "127.0.0.1:1"})
	tests := map[string]proxy.Condition{
		"nothing would be wrong":    {Direction: proxy.Up},
		"direction 9":               {Direction: 9, Stall: true},
		"admission 9":               {New: 9},
		"jitter 2s":                 {Delay: time.Second, Jitter: 2 * time.Second},
		"rate of -1":                {Rate: -1, Stall: true},
		"slice of -1":               {Slice: -1, Stall: true},
		"no meaning without":        {Pause: 1, Stall: true},
		"half open needs":           {HalfOpen: true},
		"numbers must not be negat": {Cut: &proxy.Cut{Byte: -1}},
	}
	for text, c := range tests {
		if lift, err := p.Impose(c); err == nil || lift != nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: got error %v, want %q", c, err, text)
		}
	}
	if _, err := proxy.Listen(t.Context(), proxy.Options{}); err == nil {
		t.Error("no upstream: got no error")
	}
}

// TestTheContextEndsTheProxy, and a closed one takes no conditions.
func TestTheContextEndsTheProxy(t *testing.T) {
	s := newServer(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := proxy.Listen(ctx, proxy.Options{Upstream: s.addr})
	if err != nil {
		t.Fatal(err)
	}
	lift := impose(t, p, proxy.Condition{Stall: true})
	c := dial(t, p.Addr())
	until(t, "it is accepted", func() bool { return p.Stats().Open == 1 })
	cancel()
	wantEnd(t, c, "", false)
	lift()
	for range 2 {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Impose(proxy.Condition{Stall: true}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("impose on a closed proxy: got error %v", err)
	}
}

// TestCloseUnderEveryCondition leaves the rest to the search for leaked goroutines.
func TestCloseUnderEveryCondition(t *testing.T) {
	conditions := map[string]proxy.Condition{
		"delay": {Delay: time.Hour}, "rate": {Rate: 1}, "pause": {Slice: 1, Pause: time.Hour}, "stall": {Stall: true}, "black hole": {BlackHole: true},
		"half open": {Direction: proxy.Down, HalfOpen: true}, "half open at the client": {Direction: proxy.Up, HalfOpen: true}, "hang": {New: proxy.Hang}, "refuse": {New: proxy.Refuse},
	}
	for name, condition := range conditions {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, echo)
			p := newProxy(t, proxy.Options{Upstream: s.addr, Buffer: 1000})
			c := dial(t, p.Addr())
			send(t, c, "x")
			want(t, c, "x")
			lift := impose(t, p, condition)
			_, _ = io.WriteString(c, strings.Repeat("x", 10_000)) // A vanished client cannot.
			if condition.New == proxy.Hang {
				dial(t, p.Addr())
				until(t, "the second connection hangs", func() bool { return p.Stats().Connections == 2 })
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if met := lift(); condition.New != proxy.Refuse && met.Connections == 0 {
				t.Errorf("met %+v, want a connection", met)
			}
		})
	}
}
