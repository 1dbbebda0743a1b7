package crosscheck

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"floodproof/loadgen/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint keeps what it was sent.
type endpoint struct {
	mu     sync.Mutex
	bodies map[string]int
	header http.Header
	length map[int]bool
	answer func(n int) int
	n      int
}

func serve(t *testing.T, answer func(n int) int) (*endpoint, string) {
	t.Helper()
	e := &endpoint{bodies: map[string]int{}, length: map[int]bool{}, header: http.Header{}, answer: answer}
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	return e, s.URL + "/webhooks/acme"
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	e.bodies[string(body)]++
	e.length[len(body)] = true
	for name := range r.Header {
		e.header[name] = r.Header[name]
	}
	e.n++
	n := e.n
	e.mu.Unlock()
	w.WriteHeader(e.answer(n))
}

func always(status int) func(int) int { return func(int) int { return status } }

func TestBothSendTheSame(t *testing.T) {
	e, url := serve(t, always(http.StatusOK))
	var turns []string
	r, err := Run(t.Context(), Config{
		URL: url, Rate: 200, For: 250 * time.Millisecond, Rounds: 2, Slots: 8, Body: 300,
		Progress: func(over, of int, name string) {
			if over != len(turns) || of != 4 {
				t.Errorf("progress %d of %d after %d rounds", over, of, len(turns))
			}
			turns = append(turns, name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(turns, " "); got != "vegeta floodproof vegeta floodproof" {
		t.Errorf("turns %s, want them in turn", got)
	}
	for name, s := range map[string]*Side{"vegeta": &r.Vegeta, "floodproof": &r.Floodproof} {
		if s.Sent != 100 || s.OK != 100 || s.Failed() != 0 || s.Own.TotalCount() != 100 || s.Due.TotalCount() != 100 || len(s.DueP99s) != 2 {
			t.Errorf("%s: %d sent, %d ok, %d and %d latencies, %d rounds; want 100, all of them ok, in 2", name, s.Sent, s.OK, s.Own.TotalCount(), s.Due.TotalCount(), len(s.DueP99s))
		}
		for _, p := range []float64{50, 90, 99, 100} {
			if s.Due.At(p) < s.Own.At(p) {
				t.Errorf("%s: p%v is %v from the due time and %v from the begin; the first cannot be less", name, p, s.Due.At(p), s.Own.At(p))
			}
		}
	}
	if len(e.bodies) != 200 || len(e.length) != 1 || !e.length[300] {
		t.Errorf("%d different bodies of the lengths %v, want 200 of 300 bytes", len(e.bodies), e.length)
	}
	for name := range e.header {
		if strings.HasPrefix(name, "X-Vegeta") {
			t.Errorf("the endpoint saw %s, which no provider sends", name)
		}
	}
}

// TestSignedAlike: what either side sends of a provider carries a valid signature, an event in each request.
func TestSignedAlike(t *testing.T) {
	stripe, _ := provider.Find("stripe")
	const secret = "whsec_crosscheck"
	valid := 0
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		stamp, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Stripe-Signature"), "t="), ",")
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		again := provider.Request{Body: body}
		stripe.Sign(&again, provider.Signing{Secrets: []string{secret}, Now: time.Unix(seconds, 0)})
		mu.Lock()
		defer mu.Unlock()
		if err == nil && again.Header.Get("Stripe-Signature") == r.Header.Get("Stripe-Signature") {
			valid++
		}
	}))
	defer s.Close()
	r, err := Run(t.Context(), Config{URL: s.URL, Rate: 200, For: 100 * time.Millisecond, Rounds: 1, Provider: stripe, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	if want := r.Vegeta.Sent + r.Floodproof.Sent; valid != want || want != 40 {
		t.Errorf("%d valid signatures of %d requests, want all of 40", valid, want)
	}
}

func TestFailuresByWhatTheyAre(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, flaky := serve(t, func(n int) int {
		if n%2 == 0 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangUp.Close()
	_, moved := serve(t, always(http.StatusFound))
	tests := []struct {
		name, url string
		want      func(s *Side) bool
		void      bool
	}{
		{"nobody listens", dead, func(s *Side) bool { return s.Unconnected == 20 && s.Unanswered == 0 }, true},
		{"every second refused", flaky, func(s *Side) bool { return s.OK == 10 && s.Refused[503] == 10 }, false},
		{"hung up on", hangUp.URL, func(s *Side) bool { return s.Unanswered == 20 && s.Unconnected == 0 }, true},
		{"moved, and nobody follows", moved, func(s *Side) bool { return s.Refused[302] == 20 }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Run(t.Context(), Config{URL: tt.url, Rate: 200, For: 100 * time.Millisecond, Rounds: 1, Body: MinBody})
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range map[string]*Side{"vegeta": &r.Vegeta, "floodproof": &r.Floodproof} {
				if s.Sent != 20 || !tt.want(s) {
					t.Errorf("%s: %d sent, %d ok, refused %v, %d unanswered, %d unconnected", name, s.Sent, s.OK, s.Refused, s.Unanswered, s.Unconnected)
				}
			}
			if tt.void && (!r.Meaningless() || r.Findings()[0].Effect != NoAnswers) {
				t.Errorf("meaningless %v, findings %v; want that nobody answered", r.Meaningless(), r.Findings())
			}
		})
	}
}

// stalling answers at once but for half a second from its k-th request on, in each round anew.
type stalling struct {
	mu    sync.Mutex
	n     int
	until time.Time
}

const (
	stallFor   = 500 * time.Millisecond
	stallRate  = 200
	stallRound = 2 * stallRate
)

func (s *stalling) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.n++; s.n%stallRound == stallRate/2 {
		s.until = time.Now().Add(stallFor)
	}
	wait := time.Until(s.until)
	s.mu.Unlock()
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
		}
	}
}

// TestStall: two requests at a time, a server that stalls for half a second. Of 400 requests, some fifty are due in the first half of the stall, and each of these
// waits for at least the other half, however slow the machine is. vegeta's own clock knows of two.
func TestStall(t *testing.T) {
	server := httptest.NewServer(new(stalling))
	defer server.Close()
	r, err := Run(t.Context(), Config{URL: server.URL, Rate: stallRate, For: 2 * time.Second, Rounds: 1, Slots: 2, Body: MinBody})
	if err != nil {
		t.Fatal(err)
	}
	own, theirs, ours := r.Vegeta.Own.At(99), r.Vegeta.Due.At(99), r.Floodproof.Due.At(99)
	if theirs < stallFor/2 || ours < stallFor/2 || own >= theirs {
		t.Errorf("p99 %v as vegeta reports it, %v from its due times, %v of ours; want the first below and the others at least %v", own, theirs, ours, stallFor/2)
	}
	if r.Vegeta.Busiest != 2 || r.Floodproof.Blocked == 0 {
		t.Errorf("at most %d workers of vegeta were busy, %d requests of ours were blocked; want both of 2, and some", r.Vegeta.Busiest, r.Floodproof.Blocked)
	}
	if f := r.Findings(); own < stallFor/4 && f[0].Effect != CoordinatedOmission { // else the machine was so slow that even vegeta saw it
		t.Errorf("findings %v, want coordinated omission first", f)
	}
}

func TestInterrupt(t *testing.T) {
	for at, play := range map[string]func(context.Context, Config) error{
		"vegeta":     func(ctx context.Context, c Config) error { _, err := Run(ctx, c); return err },
		"floodproof": func(ctx context.Context, c Config) error { _, err := ourRound(ctx, newSource(c), 0); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, url := serve(t, func(n int) int {
			if n > 5 {
				cancel()
			}
			return http.StatusOK
		})
		if err := play(ctx, Config{URL: url, Rate: 100, For: time.Hour, Rounds: 1, Slots: 4, Body: MinBody}); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted during %s: error %v, want context.Canceled", at, err)
		}
		cancel()
	}
}

func TestBadConfig(t *testing.T) {
	stripe, _ := provider.Find("stripe")
	good := Config{URL: "http://127.0.0.1/", Rate: 100, For: time.Second, Rounds: 1, Body: 100}
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no url", func(c *Config) { c.URL = "" }, "want one such as"},
		{"other scheme", func(c *Config) { c.URL = "ftp://127.0.0.1" }, "want one such as"},
		{"no rate", func(c *Config) { c.Rate = 0 }, "rate: 0"},
		{"a nanosecond has no part", func(c *Config) { c.Rate = 2_000_000_000 }, "rate: 2000000000"},
		{"no time", func(c *Config) { c.For = time.Millisecond }, "are 0 requests"},
		{"no rounds", func(c *Config) { c.Rounds = 0 }, "rounds: 0"},
		{"short body", func(c *Config) { c.Body = 3 }, "body: 3 bytes"},
		{"slots", func(c *Config) { c.Slots = -1 }, "slots: -1"},
		{"no secret", func(c *Config) { c.Provider = stripe }, "stripe has none to sign with"},
	}
	for _, tt := range tests {
		c := good
		tt.change(&c)
		if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}
