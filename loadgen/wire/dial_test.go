package wire

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
)

// TestRefusedConnection connects to a port where nobody listens.
func TestRefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	req, closed := post(t, t.Context(), "http://"+l.Addr().String(), "{}")
	_, trace, err := exchangeOnce(newClient(t, Options{MaxConns: 1}), req, Shape{})
	if !errors.Is(err, syscall.ECONNREFUSED) || trace != (Trace{}) || !closed.closed {
		t.Errorf("error %v, trace %+v, body closed %v", err, trace, closed.closed)
	}
}

// TestUnknownHost asks for a name that cannot be (RFC 6761).
func TestUnknownHost(t *testing.T) {
	req, _ := post(t, t.Context(), "http://receiver.invalid/", "{}")
	_, trace, err := exchangeOnce(newClient(t, Options{}), req, Shape{})
	var dns *net.DNSError
	if !errors.As(err, &dns) || trace != (Trace{}) {
		t.Errorf("error %v, trace %+v, want one of name resolution", err, trace)
	}
}

// TestSources sees from where connections come.
func TestSources(t *testing.T) {
	var sources []netip.Addr
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "127.1.2.3"} {
		l, err := net.Listen("tcp", address+":0")
		if err != nil {
			t.Skipf("%v: on macOS, make the address with: sudo ifconfig lo0 alias %s", err, address)
		}
		_ = l.Close()
		sources = append(sources, netip.MustParseAddr(address))
	}
	from := make(chan netip.Addr, 9)
	s := serve(t, func(s *server, _ int, conn net.Conn) {
		from <- conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()
		answering(okAnswer, 1)(s, 0, conn)
	})
	c := newClient(t, Options{Sources: sources, MaxIdle: -1})
	var got []netip.Addr
	for range 7 {
		mustExchange(t, c, s.url)
		got = append(got, <-from)
	}
	want := slices.Concat(sources, sources, sources[:1])
	if !slices.Equal(got, want) {
		t.Errorf("connections came from %v, want %v", got, want)
	}
}

// TestForeignSource connects from an address that no machine has (RFC 5737).
func TestForeignSource(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	req, _ := post(t, t.Context(), s.url, "{}")
	c := newClient(t, Options{Sources: []netip.Addr{netip.MustParseAddr("192.0.2.1")}})
	_, trace, err := exchangeOnce(c, req, Shape{})
	if !errors.Is(err, addrNotAvailable) || trace != (Trace{}) {
		t.Errorf("error %v, trace %+v, want %v", err, trace, addrNotAvailable)
	}
}
