package proxy

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sizes is the end of a connection that notes how large each write was.
type sizes struct {
	duplex
	writes chan int
}

func (s sizes) Write(b []byte) (int, error) {
	s.writes <- len(b)
	return len(b), nil
}
func (sizes) SetWriteDeadline(time.Time) error { return nil }
func (sizes) CloseWrite() error                { return nil }

// source is an end that brings some bytes and then the end of the stream.
type source struct {
	net.Conn
	io.Reader
}

func (s source) Read(b []byte) (int, error)      { return s.Reader.Read(b) }
func (source) SetReadDeadline(_ time.Time) error { return nil }
func (source) CloseWrite() error                 { return nil }

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

func TestWritesAreAsLargeAsTheConditionsSay(t *testing.T) {
	tests := map[string]struct {
		conditions []Condition
		bytes      int64
		want       []int
	}{
		"nothing":             {nil, 1000, []int{1000}},
		"slice":               {[]Condition{{Slice: 400}}, 1000, []int{400, 400, 200}},
		"least slice":         {[]Condition{{Slice: 900}, {Slice: 500}}, 1000, []int{500, 500}},
		"rate":                {[]Condition{{Rate: 40_000}}, 1000, []int{400, 400, 200}},
		"rate below portions": {[]Condition{{Rate: 50}}, 3, []int{1, 1, 1}},
		"rate and slice":      {[]Condition{{Rate: 40_000}, {Slice: 300}}, 1000, []int{300, 300, 300, 100}},
		"up to a cut":         {[]Condition{{Slice: 400, Cut: &Cut{Byte: 500}}}, 1000, []int{400, 100}},
		"another direction":   {[]Condition{{Direction: Down, Slice: 1}}, 1000, []int{1000}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := Listen(t.Context(), Options{Upstream: "127.0.0.1:1"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for _, c := range tt.conditions {
				if _, err := p.Impose(c); err != nil {
					t.Fatal(err)
				}
			}
			a, b := net.Pipe()
			defer b.Close()
			dst := sizes{source{a, nil}, make(chan int, 100)}
			c := newConn(p, dst)
			defer c.end(false)
			c.up.start(source{a, io.LimitReader(zeros{}, tt.bytes)}, dst)
			c.up.run()
			close(dst.writes)
			var got []int
			for n := range dst.writes {
				got = append(got, n)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLeast(t *testing.T) {
	for _, tt := range [][3]int{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 7, 5}, {7, 5, 5}} {
		if got := least(tt[0], tt[1]); got != tt[2] {
			t.Errorf("least(%d, %d): got %d, want %d", tt[0], tt[1], got, tt[2])
		}
	}
}

// TestDelaysAddUpAndStayWithinTheJitter looks at the times that parcels get.
func TestDelaysAddUpAndStayWithinTheJitter(t *testing.T) {
	all := []*imposed{
		{Condition: Condition{Delay: 100, Jitter: 20}}, {Condition: Condition{Direction: Up, Delay: 1000, Jitter: 30}}, {Condition: Condition{Direction: Down, Delay: 7}},
	}
	s := sum(all, Up, &shape{})
	if s.delay != 1100 || s.jitter != 50 {
		t.Fatalf("got delay %d and jitter %d, want 1100 and 50", s.delay, s.jitter)
	}
	now := time.Now()
	for lot, want := range map[float64]time.Duration{-1: 1050, 0: 1100, 0.5: 1125, 1: 1150} {
		if got := (&parcel{arrived: now, lot: lot}).due(s).Sub(now); got != want {
			t.Errorf("lot %v: due after %d, want %d", lot, got, want)
		}
	}
	plain := &shape{}
	if s := sum(nil, Up, plain); s != plain {
		t.Error("no conditions: got a shape of its own, which would wake every pump")
	}
}
