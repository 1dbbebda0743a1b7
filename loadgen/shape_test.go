package loadgen

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
)

// arrival is what a server got of a request: how much of the body of how long a one, and whether the client was there to the end of it.
type arrival struct {
	attempt      string
	got, of      int
	whole, there bool
}

// arrivals is a raw server that reads every request to its end or the connection's, and answers whole ones. Before it answers a first attempt it looks, for
// as long as it has patience, whether the client goes away.
func arrivals(t *testing.T, patience time.Duration) (url string, list func() []arrival) {
	t.Helper()
	var mu sync.Mutex
	var all []arrival
	url = rawServer(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, err := io.ReadAll(req.Body)
			a := arrival{attempt: req.Header.Get("X-Attempt"), got: len(body), of: int(req.ContentLength), whole: err == nil}
			if a.whole && a.attempt == "1" {
				// A client that is gone has closed; one that waits has not, and says nothing.
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				_, err = r.ReadByte()
				a.there = !errors.Is(err, io.EOF)
				_ = conn.SetReadDeadline(time.Time{})
			}
			mu.Lock()
			all = append(all, a)
			mu.Unlock()
			if !a.whole {
				return
			}
			if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); err != nil {
				return
			}
		}
	})
	return url, func() []arrival {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// TestShapesOnTheWire: with the transport of the package, what a server sees of the first attempt is what the shape says, and the second is whole.
func TestShapesOnTheWire(t *testing.T) { onEach(t, testShapesOnTheWire) }

func testShapesOnTheWire(t *testing.T, to http.RoundTripper) {
	t.Helper()
	for _, tt := range []struct {
		name         string
		inject       Inject
		whole, there bool
	}{
		{"cut body", Inject{CutBody: 1}, false, false},
		{"client gone", Inject{ClientGone: 1}, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, list := arrivals(t, 4*time.Second) // nobody is so slow to hang up
			g, books := onWire(t, url, 6)
			g.Transport = to
			g.Traffic.Inject = tt.inject
			mustRun(t, g)
			first := 0
			for _, a := range list() {
				if a.attempt != "1" {
					if !a.whole {
						t.Errorf("a later attempt arrived as %+v", a)
					}
					continue
				}
				first++
				if a.whole != tt.whole || a.there != tt.there || !tt.whole && a.got != a.of/2 {
					t.Errorf("the first attempt arrived as %+v, want whole %t, and a client that is there %t", a, tt.whole, tt.there)
				}
			}
			if first != 6 {
				t.Errorf("%d first attempts arrived, want 6", first)
			}
			for n := range uint32(6) {
				got := books.of(n)
				if len(got) != 2 || got[0].Result != ledger.Unanswered || got[0].Then != ledger.Retry || got[1].Result != ledger.OK {
					t.Errorf("attempts %+v, want one without an answer and one that succeeds", got)
				}
			}
		})
	}
}

// TestSlowBodyOnTheWire: of the body hardly anything arrives after the first half, until the sender's time-out.
func TestSlowBodyOnTheWire(t *testing.T) { onEach(t, testSlowBodyOnTheWire) }

func testSlowBodyOnTheWire(t *testing.T, to http.RoundTripper) {
	t.Helper()
	url, list := arrivals(t, time.Millisecond)
	g, books := onWire(t, url, 2)
	g.Transport = to
	g.Traffic.Inject.SlowBody = 1
	g.Traffic.Mix[0].Provider.Timeout = 1200 * time.Millisecond
	mustRun(t, g)
	slow := 0
	for _, a := range list() {
		if a.whole {
			continue
		}
		// Up to the first half, and a byte follows a second after that.
		if slow++; a.got > a.of/2+1 {
			t.Errorf("%d of %d bytes arrived, want at most half", a.got, a.of)
		}
	}
	unanswered := 0
	for _, a := range books.attempts {
		if books.deliveries[a.Delivery].Class != ledger.Malformed {
			continue
		}
		if unanswered++; a.Result != ledger.Unanswered || a.Then != ledger.Exhausted || a.Done-a.Start < 1200*time.Millisecond {
			t.Errorf("attempt %+v, want no answer until the time-out", a)
		}
	}
	if unanswered != 2 || slow > 2 {
		t.Errorf("%d attempts without an answer and %d arrivals, want 2", unanswered, slow)
	}
}

// TestShapesThroughTheBody: a transport that knows nothing about connections is given the shape by the body that it reads.
func TestShapesThroughTheBody(t *testing.T) {
	for _, tt := range []struct {
		name   string
		inject Inject
		class  ledger.Class
		want   []ledger.Attempt
	}{
		{"cut body", Inject{CutBody: 1}, ledger.Genuine, []ledger.Attempt{
			{Try: 1, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 2, Due: time.Minute, Done: time.Minute, Status: 200, Result: ledger.OK, Then: ledger.Settled}}},
		{"client gone", Inject{ClientGone: 1}, ledger.Genuine, []ledger.Attempt{
			{Try: 1, Result: ledger.Unanswered, Then: ledger.Retry},
			{Try: 2, Due: time.Minute, Done: time.Minute, Status: 200, Result: ledger.OK, Then: ledger.Settled}}},
		{"slow body", Inject{SlowBody: 1}, ledger.Malformed, []ledger.Attempt{
			{Try: 1, Done: 5 * time.Second, Result: ledger.Unanswered, Then: ledger.Exhausted}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := plain(at{0}, 1)
				in.Inject = tt.inject
				g, books := bubble(t, in, []Segment{{Name: "real", Until: time.Hour, Scale: 1}}, answer(200, 0))
				mustRun(t, g)
				var got []ledger.Attempt
				for _, a := range books.attempts {
					if books.deliveries[a.Delivery].Class == tt.class {
						a.Delivery = 0
						got = append(got, a)
					}
				}
				if diff := cmp.Diff(tt.want, got, ignoring); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// shaper is a transport with the wire in its hands that notes the shapes that it was asked for.
type shaper struct {
	receiver
	mu     sync.Mutex
	shapes []Shape
}

func (s *shaper) Send(r *http.Request, shape Shape, _ time.Duration) (*http.Response, int64, error) {
	s.mu.Lock()
	s.shapes = append(s.shapes, shape)
	s.mu.Unlock()
	if shape != Whole {
		return nil, 0, errors.Join(errors.New("not even a byte"), r.Body.Close())
	}
	resp, err := s.RoundTrip(r)
	return resp, 100, err
}

func TestShapersShape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := plain(at{0}, 1)
		in.Inject.CutBody = 1
		to := &shaper{receiver: answer(200, 0)}
		g, books := bubble(t, in, wholeDay(3600), to)
		mustRun(t, g)
		if diff := cmp.Diff([]Shape{CutBody, Whole}, to.shapes); diff != "" {
			t.Errorf("shapes (-want +got):\n%s", diff)
		}
		if got := books.of(0); len(got) != 2 || got[0].Result != ledger.Unconnected || got[1].Result != ledger.OK {
			t.Errorf("attempts %+v, want that nothing was written and then success", got)
		}
	})
}

// TestHostileBodies: what is oversized or of a wrong type is signed correctly, cannot be parsed, and is no event.
func TestHostileBodies(t *testing.T) { onEach(t, testHostileBodies) }

func testHostileBodies(t *testing.T, to http.RoundTripper) {
	t.Helper()
	type request struct {
		length int
		typ    string
		parsed bool
	}
	var mu sync.Mutex
	got := map[request]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		key := request{length: len(body), typ: r.Header.Get("Content-Type"), parsed: bytes.HasSuffix(body, []byte("]"))}
		if key.length < 1000 {
			key.length = 0
		}
		if signed := r.Header.Get("X-Signature"); signed != mac("whsec_0123456789abcdef", r.Header.Get("X-Stamp"), body) {
			t.Errorf("a body of %d bytes is signed %s, which is wrong", len(body), signed)
		}
		mu.Lock()
		got[key]++
		mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer server.Close()
	g, books := onWire(t, server.URL, 4)
	g.Transport = to
	g.Traffic.Mix[0].Provider.Delays = nil
	g.Traffic.Inject = Inject{Oversized: 1, WrongType: 1}
	mustRun(t, g)
	want := map[request]int{
		{0, "application/json", true}: 4, {defaultOversized, "application/json", false}: 4, {0, "text/plain; charset=utf-8", false}: 4,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(request{})); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	classes := map[ledger.Class]int{}
	for _, d := range books.deliveries {
		classes[d.Class]++
	}
	if diff := cmp.Diff(map[ledger.Class]int{ledger.Genuine: 4, ledger.Malformed: 8}, classes); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}
