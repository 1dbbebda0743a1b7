package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// serveEnviron is the least that a configuration needs.
func serveEnviron(more ...string) []string {
	return append([]string{"FLOODPROOF_SINK=http://127.0.0.1:9", "FLOODPROOF_SECRET_STRIPE=whsec_real"}, more...)
}

// TestServeLanes: how each lane is worked on, from the file, from variables, and from what is said of all.
func TestServeLanes(t *testing.T) {
	const file = `format: 1
rate: 120/m
backoff: 1s
max_attempts: 7
lanes:
  - {name: mail, provider: stripe, type: "mail.*", rate: 9, burst: 3, backoff: 2s, max_backoff: 10m, max_attempts: 12, give_up_after: 0}
  - {name: orders, type: "order.*", concurrency: 8}
  - {name: orders, type: "cart.*", give_up_after: 2d}
sender_rate: 50/s
`
	for _, tt := range []struct {
		name    string
		environ []string
		want    []string
		limits  map[string]queue.Limit
	}{
		{"the file", nil, []string{
			"mail: 16 at once, 9/s, 3 at once, waits 2s to 10m0s, gives up after 12 attempts",
			"orders: 8 at once, 2/s with the others, waits 1s to 30s, gives up after 7 attempts and 2 days",
			": 16 at once, 2/s with the others, waits 1s to 30s, gives up after 7 attempts and 3 days",
		}, map[string]queue.Limit{
			"": {Name: "all lanes", Rate: 2, Burst: 1}, "orders": {Name: "all lanes", Rate: 2, Burst: 1}, "mail": {Name: "lane mail", Rate: 9, Burst: 3},
		}},
		{"variables", []string{"FLOODPROOF_LANES=[{name: big, concurrency: 2}]", "FLOODPROOF_RATE=90/h", "FLOODPROOF_BURST=5", "FLOODPROOF_MAX_BACKOFF=1m"}, []string{
			"big: 2 at once, 1.5/min, 5 at once with the others, waits 1s to 1m0s, gives up after 7 attempts and 3 days",
			": 16 at once, 1.5/min, 5 at once with the others, waits 1s to 1m0s, gives up after 7 attempts and 3 days",
		}, map[string]queue.Limit{"": {Name: "all lanes", Rate: 0.025, Burst: 5}, "big": {Name: "all lanes", Rate: 0.025, Burst: 5}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "serve.yaml")
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := loadServe(serveSources{file: path, flags: map[string]string{"sender-burst": "7"}, environ: serveEnviron(tt.environ...)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, lane := range append(c.laneNames(), "") {
				got = append(got, lane+": "+c.describeLane(lane))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("lanes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.limits, c.limits()); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			if got, want := c.senders.limit(), (reference.SenderLimit{Rate: 50, Burst: 7}); got != want {
				t.Errorf("senders: got %+v, want %+v", got, want)
			}
		})
	}
}

// TestServeWorkers: what is said of a lane reaches its worker.
func TestServeWorkers(t *testing.T) {
	c, err := load(t, "format: 1\nlanes: [{name: mail, rate: 9, backoff: 2s, max_backoff: 1m, max_attempts: 12, give_up_after: 0}]\n", serveEnviron()...)
	if err != nil {
		t.Fatal(err)
	}
	workers, err := c.makeWorkers(unopened{}, reference.HandlerFunc(func(context.Context, queue.Lease) error { return nil }), slog.New(slog.DiscardHandler))
	if err != nil || len(workers) != 2 {
		t.Fatalf("%d workers, error %v, want 2", len(workers), err)
	}
	w := workers[1]
	got := fmt.Sprint(w.Lane, w.Concurrency, w.Backoff, w.MaxAttempts, w.GiveUpAfter)
	if want := fmt.Sprint("mail", 3, reference.Backoff{Base: 2 * time.Second, Max: time.Minute}, 12, attemptsDecide); got != want {
		t.Errorf("got worker %s, want %s", got, want)
	}
	if _, limited := w.Handler.(*reference.LimitHandler); !limited {
		t.Errorf("mail: got handler %T, want one with a rate", w.Handler)
	}
	if _, limited := workers[0].Handler.(*reference.LimitHandler); limited {
		t.Error("the default lane has a rate, and nobody said one")
	}
}

// TestServeRefusesLanes: what cannot be meant of lanes and senders is said with its place.
func TestServeRefusesLanes(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"a burst of nothing", "format: 1\nburst: 3\n", "serve.yaml:2: there is no rate that the burst is of"},
		{"a lane's burst of nothing", "format: 1\nrate: 5\nlanes:\n  - {name: a, burst: 3}\n", "serve.yaml:4: lane a has a burst, and no rate"},
		{"a longest wait that is shorter", "format: 1\nbackoff: 1m\n", "serve.yaml:2: the longest wait is 30s, less than the first one of 1m0s"},
		{"a lane's longest wait", "format: 1\nlanes:\n  - {name: a, max_backoff: 100ms}\n", "serve.yaml:3: lane a would wait 500ms at first and 100ms at most"},
		{"two rates", "format: 1\nlanes:\n  - {name: a, rate: 1}\n  - {name: a, rate: 2}\n", "serve.yaml:4: lane a has a rate of 1 and one of 2: keep one"},
		{"no rate", "format: 1\nlanes: [{name: a, rate: fast}]\n", `serve.yaml:2: "fast": write how many a second, minute or hour`},
		{"a rate of another unit", "format: 1\nrate: 5/day\n", `serve.yaml:2: "5/day": write how many`},
		{"a rate of nothing", "format: 1\nrate: 0\n", `serve.yaml:2: "0": write how many`},
		{"never", "format: 1\ngive_up_after: -1s\n", `serve.yaml:2: "-1s": write a time`},
		{"a lane's type", "format: 1\nlanes:\n  - {name: a, type: 'x?'}\n", "serve.yaml:3: type"},
		{"a lane of nobody", "format: 1\nlanes:\n  - {name: a, provider: shopify}\n", "serve.yaml:3: lane a is for events of shopify"},
		{"senders without a rate", "format: 1\nsender_by: provider\n", "serve.yaml:2: there is no sender-rate"},
		{"senders that are something else", "format: 1\nsender_rate: 5\nsender_by: name\n", `serve.yaml:3: "name": use address or provider`},
		{"addresses behind a proxy", "format: 1\nsender_rate: 5\npublic_url: https://hooks.example\n", "serve.yaml:2: public-url says that a proxy stands before the receiver"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.yaml, serveEnviron()...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v\nwant an error with %q", err, tt.want)
			}
		})
	}
	_, err := load(t, "format: 1\n", serveEnviron("FLOODPROOF_LANES=[{nam: a}, {name: b, rate: 0}, {name: c, burst: 2}]")...)
	for _, want := range []string{`FLOODPROOF_LANES: line 1: unknown key "nam"`, "FLOODPROOF_LANES: line 1: the lane has no name", `FLOODPROOF_LANES: line 1: "0": write how many`, "FLOODPROOF_LANES: line 1: lane c has a burst"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v\nwant an error with %q", err, want)
		}
	}
}

// TestServeExample: the example is a whole configuration, and with all that is commented out in it it is one as well.
func TestServeExample(t *testing.T) {
	if _, err := load(t, serveExample, serveEnviron()...); err != nil {
		t.Errorf("the example: %v", err)
	}
	var all strings.Builder
	for line := range strings.Lines(serveExample) {
		if utf := len(line); utf > 81 {
			t.Errorf("%d columns: %s", utf-1, line)
		}
		// What is set begins with a key, an item or a continuation; prose does not.
		set := strings.TrimPrefix(line, "# ")
		if key, _, ok := strings.Cut(strings.TrimLeft(set, " -{"), ":"); ok && !strings.ContainsAny(key, " (") && key == strings.ToLower(key) && !strings.HasPrefix(key, "edge") {
			all.WriteString(set)
		}
	}
	text := all.String()
	for _, s := range serveSettings(new(serveConfig)) {
		if !strings.Contains(text, s.key()+":") {
			t.Errorf("the example says nothing of %s", s.key())
		}
	}
	// It names files that are not there, and two places of one thing; nothing else may be wrong with it.
	_, err := load(t, text, serveEnviron("FLOODPROOF_SECRET_SHOPIFY=x", "FLOODPROOF_SECRET_KLAVIYO=x")...)
	for _, fault := range flattenAll(err) {
		if text := fault.Error(); !strings.Contains(text, "/run/secrets") && !strings.Contains(text, "a file that holds it") && !strings.Contains(text, "public-url says") && !strings.Contains(text, "has no secret") {
			t.Errorf("the example with all settings: %v", fault)
		}
	}
}

// flattenAll are the errors of which one is made, all the way down.
func flattenAll(err error) (all []error) {
	for _, part := range flatten(err) {
		if _, many := errors.AsType[interface {
			error
			Unwrap() []error
		}](part); many {
			all = append(all, flattenAll(part)...)
		} else {
			all = append(all, part)
		}
	}
	return all
}

// TestServeHelp: no line is longer than a terminal, and every setting is there.
func TestServeHelp(t *testing.T) {
	for _, verb := range []string{"serve", "dlq", "replay-events"} {
		_, out, _ := command(t, verb, "-h")
		for line := range strings.Lines(out) {
			if n := len(strings.TrimRight(line, "\n")); n > helpWidth {
				t.Errorf("%s -h: %d columns: %s", verb, n, line)
			}
		}
		if verb != "serve" {
			continue
		}
		for _, s := range serveSettings(new(serveConfig)) {
			if strings.Count(out, "  --"+s.name+" ") != 1 {
				t.Errorf("serve -h: --%s is not there once", s.name)
			}
		}
	}
}

// TestServeLaneRate: a lane calls no oftener than it may, and the others are not slowed by that. Time is that of the downstream's calls, which are counted and not measured.
func TestServeLaneRate(t *testing.T) {
	var mu sync.Mutex
	var calls []string
	released := make(chan struct{})
	downstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		calls = append(calls, r.URL.Path)
		n := len(calls)
		mu.Unlock()
		if n == 3 {
			close(released)
		}
		w.WriteHeader(http.StatusOK)
	}))
	defer downstream.Close()
	// One call an hour: what is done besides the first one did not wait for its turn.
	s := startServe(t, "--downstream", downstream.URL, "--lanes", "[{name: slow, type: 'customer.*', rate: 1/h}]")
	for key := range uint64(40) {
		if got := s.deliver(key, servedSecret); got != http.StatusOK {
			t.Fatalf("deliver: got status %d, want 200", got)
		}
	}
	<-released
	if page := s.page("/"); !strings.Contains(page, "1/h") || !strings.Contains(page, "calls at most") {
		t.Error("the dashboard does not show the lane's rate")
	}
}

func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := newRefusals([]string{"stripe"})
		log := slog.New(r.handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})))
		refuse := func(path, reason string) {
			log.Debug(refusalMessage, "path", path, "remote", "10.0.0.1:1", "status", 401, "reason", reason)
		}
		for range 5 {
			refuse("/webhooks/stripe", "signature does not match")
		}
		refuse("/webhooks/stripe", "body is too large")
		refuse("/webhooks/shopify", "no such provider here")
		refuse("/.env", "no such path")
		log.Debug("something else")
		log.Warn("the queue is away")
		time.Sleep(refusalEvery) //nolint:forbidigo // the bubble's clock
		refuse("/webhooks/stripe", "signature does not match")
		refuse("/webhooks/stripe", "signature does not match")
		r.flush(t.Context())
		r.flush(t.Context())
		want := `level=WARN msg="deliveries refused" provider=stripe status=401 reason="signature does not match" count=1
level=WARN msg="deliveries refused" provider=stripe status=401 reason="body is too large" count=1
level=WARN msg="the queue is away"
level=WARN msg="deliveries refused" provider=stripe status=401 reason="signature does not match" count=5
level=WARN msg="deliveries refused" provider=stripe status=401 reason="signature does not match" count=1
`
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("log (-want +got):\n%s", diff)
		}
	})
}

// TestServeTellsOfRefusals: the receiver's own words are those that are waited for.
func TestServeTellsOfRefusals(t *testing.T) {
	s := startServe(t, "--downstream", "http://127.0.0.1:1")
	for range 3 {
		if got := s.deliver(1, "whsec_another"); got != http.StatusUnauthorized {
			t.Fatalf("deliver with another secret: got status %d, want 401", got)
		}
	}
	_, log := s.end()
	for _, want := range []string{`"reason":"signature does not match","count":1`, `"reason":"signature does not match","count":2`} {
		if !strings.Contains(log, `"msg":"deliveries refused","provider":"stripe","status":401,`+want) {
			t.Errorf("log: want %s in\n%s", want, log)
		}
	}
}

// TestAnnounce: nothing that a queue does not promise goes unsaid.
func TestAnnounce(t *testing.T) {
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	for _, tt := range []struct {
		name      string
		claims    queue.Claims
		shares    bool
		out, warn []string
	}{
		{
			"all of it", queue.Claims{Durability: queue.DurabilityPower, DedupWindow: defaultRetention}, true,
			[]string{"survives   a loss of power\n", "kept       done events for 30 days; dead letters"}, nil,
		},
		{
			"a weak one", queue.Claims{Durability: queue.DurabilityProcess, DedupWindow: queue.Forever, Settings: map[string]string{"appendfsync": "no"}}, false,
			[]string{"survives   the end of any process, but no loss of power\n", "kept       done events for ever: this backend has no retention; dead", "rates      of this process alone"},
			[]string{"acknowledged events would not survive a loss of power", `"appendfsync":"no"`, "this backend has no retention: done events are kept for ever, and not for 30 days", "this backend cannot share rates"},
		},
		{
			"nothing at all", queue.Claims{Durability: queue.DurabilityNone, DedupWindow: time.Hour}, true,
			[]string{"survives   nothing: events are lost", "kept       done events for 1h; dead"}, []string{"keeps done events for 1h, and not for 30 days"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := load(t, "format: 1\nrate: 5\n", serveEnviron()...)
			if err != nil {
				t.Fatal(err)
			}
			var out, log strings.Builder
			c.announce(t.Context(), &out, slog.New(slog.NewJSONHandler(&log, nil)), serveStarted{tt.claims, tt.shares, addr, addr})
			for _, want := range append(tt.out, "receiver   http://127.0.0.1:1/webhooks/stripe\n") {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output: want %q in\n%s", want, out.String())
				}
			}
			for _, want := range tt.warn {
				if !strings.Contains(log.String(), want) {
					t.Errorf("log: want %q in\n%s", want, log.String())
				}
			}
			if warned := strings.Contains(log.String(), "WARN"); warned != (tt.warn != nil) {
				t.Errorf("a warning: %v, want %v in\n%s", warned, tt.warn != nil, log.String())
			}
		})
	}
}

// TestServeTellsOfDamage: a record of the log that was damaged before anybody worked on it becomes a dead letter that no worker ever sees, and people are told of it.
func TestServeTellsOfDamage(t *testing.T) {
	posts := make(chan string, 10)
	webhook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // a short one is no JSON, below
		posts <- string(body)
	}))
	defer webhook.Close()
	called := make(chan struct{}, 100)
	downstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		called <- struct{}{}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer downstream.Close()
	dir := t.TempDir()
	t.Setenv("FLOODPROOF_ALERT_WEBHOOK", webhook.URL)
	first := startServe(t, "--downstream", downstream.URL, "--dir", dir)
	if got := first.deliver(1, servedSecret); got != http.StatusOK {
		t.Fatalf("deliver: got status %d, want 200", got)
	}
	<-called
	_, _ = first.end()
	segments, err := filepath.Glob(filepath.Join(dir, "log", "0*"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("got the segments %q, %v, want one", segments, err)
	}
	raw, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)/2] ^= 1
	if err := os.WriteFile(segments[0], raw, 0o600); err != nil {
		t.Fatal(err)
	}
	second := startServe(t, "--downstream", downstream.URL, "--dir", dir)
	if body := <-posts; !strings.Contains(body, "damaged") || !strings.Contains(body, `"kind":"dead_letter"`) {
		t.Errorf("alert: got %s", body)
	}
	if _, log := second.end(); !strings.Contains(log, "damaged job moved to the dead letters") {
		t.Errorf("log: the damage is not in\n%s", log)
	}
}
