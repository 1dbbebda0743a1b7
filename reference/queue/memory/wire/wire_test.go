package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"floodproof/reference/queue/memory/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGreetings(t *testing.T) {
	a, b := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() {
		if namespace, err := wire.Welcome(b, bufio.NewReader(b), "v1"); err != nil || namespace != "mine" {
			t.Errorf("welcome: got %q, error %v", namespace, err)
		}
	})
	if version, err := wire.Greet(a, bufio.NewReader(a), "mine"); err != nil || version != "v1" {
		t.Errorf("greet: got %q, error %v", version, err)
	}
	wg.Wait()
}

// TestGreetedByItself: a connection to a port that nobody listens on may become one to itself, where every word comes back.
func TestGreetedByItself(t *testing.T) {
	a, b := net.Pipe()
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(b, b) })
	if _, err := wire.Greet(a, bufio.NewReader(a), "mine"); err == nil {
		t.Error("greeted by its own echo: got no error")
	}
	_ = a.Close()
	wg.Wait()
}

func FuzzReadFrame(f *testing.F) {
	f.Add(wire.AppendFrame(nil, 7, func(b []byte) []byte { return append(b, "body"...) }))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 4 && b[0] != 0 && b[0] != 0xff {
			return // would take memory, as it may
		}
		r := bytes.NewReader(b)
		number, body, err := wire.ReadFrame(r)
		if err != nil {
			return
		}
		again := wire.AppendFrame(nil, number, func(to []byte) []byte { return append(to, body...) })
		if !bytes.Equal(again, b[:len(b)-r.Len()]) {
			t.Fatalf("frame %x became %x", b[:len(b)-r.Len()], again)
		}
	})
}

// TestSenderTogether: what comes while a write is under way is written with the next.
func TestSenderTogether(t *testing.T) {
	a, b := net.Pipe()
	s := wire.NewSender(a)
	for i := range uint64(100) {
		if err := s.Send(i, nil); err != nil {
			t.Fatal(err)
		}
	}
	r := bufio.NewReader(b)
	for i := range uint64(100) {
		if number, _, err := wire.ReadFrame(r); err != nil || number != i {
			t.Fatalf("frame %d: got %d, error %v", i, number, err)
		}
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	if err := s.Send(1, nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Send after Stop: got error %v, want %v", err, net.ErrClosed)
	}
	_, _ = a.Close(), b.Close()
}

func TestSenderFails(t *testing.T) {
	a, b := net.Pipe()
	_ = b.Close()
	s := wire.NewSender(a)
	_ = s.Send(1, nil)
	if err := s.Stop(); err == nil {
		t.Error("Stop after a write that failed: got no error")
	}
	if _, err := a.Write([]byte{1}); err == nil {
		t.Error("the connection is open after a write that failed")
	}
}
