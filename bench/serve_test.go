package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
)

const (
	servedSecret   = "whsec_a-secret-of-the-test"
	servedPassword = "correct horse battery"
	servedMail     = "anna.lopez@example.org"
)

// served is a pipeline that runs, and somebody who looks at it.
type served struct {
	t                   *testing.T
	receiver, dashboard string
	client              *http.Client
	// end stops it, and returns its exit status and its log.
	end func() (int, string)
}

// startServe runs `floodproof serve` in this process.
func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	t.Setenv("FLOODPROOF_SECRET_STRIPE", servedSecret)
	t.Setenv("FLOODPROOF_PASSWORD", servedPassword)
	out, in := io.Pipe()
	var log bytes.Buffer
	program := Program{
		Args:   append([]string{"serve", "--dir", t.TempDir(), "--listen", "127.0.0.1:0", "--dashboard", "127.0.0.1:0"}, args...),
		Stdout: in, Stderr: &log,
	}
	ctx, cancel := context.WithCancel(t.Context())
	status := make(chan int, 1)
	go func() {
		status <- program.Main(ctx)
		_ = in.Close()
	}()
	s := &served{t: t}
	s.end = sync.OnceValues(func() (int, string) {
		cancel()
		code := <-status
		return code, log.String()
	})
	lines := bufio.NewReader(out)
	t.Cleanup(func() { _, _ = s.end() })
	for _, part := range []struct {
		name string
		into *string
	}{{"receiver", &s.receiver}, {"dashboard", &s.dashboard}} {
		line, err := lines.ReadString('\n')
		words := strings.Fields(line)
		if err != nil || len(words) < 2 || words[0] != part.name {
			_ = out.Close() // so that nobody waits to be read
			_, said := s.end()
			t.Fatalf("serve did not say where its %s is: %q, %v\n%s", part.name, line, err, said)
		}
		*part.into = strings.TrimSuffix(strings.TrimSuffix(words[1], "stripe"), "/")
	}
	drained := make(chan string, 1)
	go func() {
		rest, _ := io.ReadAll(lines) // the pipe is closed at the end
		drained <- string(rest)
	}()
	t.Cleanup(func() {
		_, _ = s.end()
		<-drained
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = &http.Client{Transport: transport, Jar: jar}
	return s
}

// do sends a request to the dashboard, with the password.
func (s *served) do(method, target string, form url.Values) *http.Response {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.dashboard+target, strings.NewReader(form.Encode()))
	if err != nil {
		s.t.Fatal(err)
	}
	req.SetBasicAuth("", servedPassword)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", s.dashboard)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

func (s *served) page(target string) string {
	s.t.Helper()
	resp := s.do(http.MethodGet, target, nil)
	defer func() { _ = resp.Body.Close() }() // it was only read
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: got %s, %v: %s", target, resp.Status, err, text)
	}
	return string(text)
}

// until follows the dashboard's stream until its numbers are these.
func (s *served) until(want map[string]string) {
	s.t.Helper()
	resp := s.do(http.MethodGet, "/stream", nil)
	defer func() { _ = resp.Body.Close() }() // its end was not waited for
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var news struct{ Cells map[string][2]string }
		if err := json.Unmarshal([]byte(data), &news); err != nil {
			s.t.Fatal(err)
		}
		got := map[string]string{}
		for key := range want {
			got[key] = news.Cells[key][0]
		}
		if cmp.Equal(want, got) {
			return
		}
	}
	s.t.Fatalf("the stream ended before the numbers were %v", want)
}

// deliver sends an event of Stripe and returns the status of the answer.
func (s *served) deliver(key uint64, secret string) int {
	s.t.Helper()
	stripe, _ := provider.Find("stripe")
	r := provider.Request{Header: http.Header{}}
	e := provider.Event{Key: key, Draw: 2, ResourceKey: 3, ResourceDraw: 4, Version: 1, At: time.Now()}
	stripe.Render(&r, provider.Delivery{Key: 5, Attempt: 1, Events: []provider.Event{e}})
	r.Body = bytes.Replace(r.Body, []byte(`"object":"event"`), []byte(`"object":"event","email":"`+servedMail+`"`), 1)
	stripe.Sign(&r, provider.Signing{Secrets: []string{secret}, Now: time.Now()})
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.receiver+"/stripe", bytes.NewReader(r.Body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header = r.Header
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close() // the status is all that counts
	return resp.StatusCode
}

// TestServe sends events through the whole pipeline, looks at what becomes of one that the downstream refuses, and gives it back from the dashboard.
func TestServe(t *testing.T) {
	var accepts atomic.Bool
	var taken atomic.Int64
	downstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !accepts.Load() {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, "no account of "+servedMail) // as downstreams do
			return
		}
		taken.Add(1)
		w.WriteHeader(http.StatusOK)
	}))
	defer downstream.Close()
	s := startServe(t, "--downstream", downstream.URL+"/token-of-the-test")
	if got := s.deliver(1, servedSecret); got != http.StatusOK {
		t.Fatalf("deliver: got status %d, want 200", got)
	}
	if got := s.deliver(2, "whsec_another"); got != http.StatusUnauthorized {
		t.Errorf("deliver with another secret: got status %d, want 401", got)
	}
	s.until(map[string]string{"all/dead": "1", "all/waiting": "0", "worker/0/dead": "1"})

	letters := s.page("/letters")
	if !strings.Contains(letters, "downstream answered 422") {
		t.Errorf("dead letters: want the reason in\n%s", letters)
	}
	link := regexp.MustCompile(`/event\?key=[\w.-]+`).FindString(letters)
	if page := s.page(link); !strings.Contains(page, "attempt 1 failed") {
		t.Errorf("event: want its history in\n%s", page)
	}
	if page := s.page(link + "&payload=show"); !strings.Contains(page, servedMail) {
		t.Errorf("event: want its payload in\n%s", page)
	}
	accepts.Store(true)
	token := regexp.MustCompile(`name="token" value="([\w-]+)"`).FindStringSubmatch(letters)[1]
	_ = s.do(http.MethodPost, "/letters/retry", url.Values{"token": {token}, "all": {"yes"}}).Body.Close()
	s.until(map[string]string{"all/dead": "0", "lane/0/done": "1", "worker/0/done": "1"})
	if taken.Load() != 1 {
		t.Errorf("downstream: took %d effects, want 1", taken.Load())
	}

	signals := s.page("/metrics")
	for _, want := range []string{
		`floodproof_queue_jobs{lane="default",state="done"} 1`,
		`floodproof_worker_jobs_total{lane="default",outcome="dead",worker="worker"} 1`,
		`floodproof_receiver_requests_total{provider="stripe",status="200"} 1`,
		`floodproof_receiver_refusals_total{provider="stripe",reason="forged"} 1`,
	} {
		if !strings.Contains(signals, want) {
			t.Errorf("metrics: want a line %s", want)
		}
	}
	status, log := s.end()
	if status != ExitPass {
		t.Errorf("exit status: got %d, want %d: %s", status, ExitPass, log)
	}
	checkServedLog(t, log)
}

// checkServedLog: every line is JSON, the dead letter is there, and nothing that a log must not hold.
func checkServedLog(t *testing.T, log string) {
	t.Helper()
	for line := range strings.Lines(log) {
		if !json.Valid([]byte(line)) {
			t.Errorf("log: %q is not JSON", line)
		}
	}
	for _, want := range []string{`"msg":"serving"`, "job moved to the dead letters", `"reason":"downstream answered 422"`, "payload was shown", "dead letters retried", `"msg":"stopped"`} {
		if !strings.Contains(log, want) {
			t.Errorf("log: want %q in\n%s", want, log)
		}
	}
	for _, never := range []string{servedMail, servedSecret, servedPassword, "whsec_another", "token-of-the-test", `\"object\"`} {
		if strings.Contains(log, never) {
			t.Errorf("log holds %q:\n%s", never, log)
		}
	}
}

// TestServeWithoutPassword: everything behind the door is closed, the receiver is not.
func TestServeWithoutPassword(t *testing.T) {
	s := startServe(t, "--downstream", "http://127.0.0.1:1")
	for _, target := range []string{"/", "/letters", "/stream", "/metrics"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.dashboard+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // the status is all that counts
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s: got %s, want 401", target, resp.Status)
		}
	}
	if got := s.deliver(1, servedSecret); got != http.StatusOK {
		t.Errorf("deliver: got status %d, want 200", got)
	}
}

// load reads a configuration with the least that is needed besides.
func load(t *testing.T, yaml string, environ ...string) (*serveConfig, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "serve.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadServe(serveSources{file: file, flags: map[string]string{"concurrency": "3"}, environ: environ})
}

// TestServeHosts: names come from a variable too, which replaces those of the file.
func TestServeHosts(t *testing.T) {
	c, err := load(t, "format: 1\nhosts: [a.example]\n", "FLOODPROOF_HOSTS=b.example, c.example", "FLOODPROOF_SINK=http://127.0.0.1:9", "FLOODPROOF_SECRET_STRIPE=whsec")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b.example", "c.example"}, c.hosts); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

// TestServeSources: a flag decides over a variable, and that over the file; secrets come from files too.
func TestServeSources(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("new\nold\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, fmt.Sprintf(`format: 1
downstream: http://of-the-file
lease: 5s
concurrency: 1
max_attempts: 7
hosts: [hooks.example.com]
providers: {shopify: {secret_file: %q, max_body: 2048}}
lanes:
  - {name: orders, provider: shopify, type: "orders/*", concurrency: 8}
  - {name: orders, provider: stripe}
`, secret), "FLOODPROOF_SINK=http://of-the-variable", "FLOODPROOF_CONCURRENCY=2", "FLOODPROOF_SECRET_STRIPE=whsec", "FLOODPROOF_LOG_LEVEL=debug", "OTHER=x")
	if err != nil {
		t.Fatal(err)
	}
	shopify := c.receivers["shopify"]
	orders, _ := c.laneOf("orders")
	got := fmt.Sprint(c.downstream, " ", c.lease, c.all.concurrency, c.all.maxAttempts, c.hosts, c.providerNames(), c.laneNames(), orders.concurrency, orders.maxAttempts,
		len(shopify.Secrets), shopify.MaxBody, c.level == slog.LevelDebug, len(c.laneRules()))
	want := "http://of-the-variable 5s 3 7 [hooks.example.com] [shopify stripe] [orders] 8 7 2 2048 true 2"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestServeRefusesFile(t *testing.T) {
	for _, tt := range []struct{ name, yaml, want string }{
		{"empty", "", "serve.yaml:1: the file is empty"},
		{"not YAML", "format: [", "serve.yaml: not valid YAML"},
		{"two documents", "format: 1\n---\nformat: 1\n", "a second document"},
		{"no format", "lease: 5s\n", "there is no format"},
		{"another format", "format: 2\n", `serve.yaml:1: format is "2"`},
		{"a list", "- 1\n", "write a mapping"},
		{"an unknown key", "format: 1\nlaese: 5s\n", `serve.yaml:2: unknown key "laese"`},
		{"a key twice", "format: 1\nlease: 5s\nlease: 6s\n", `serve.yaml:3: key "lease" is there twice`},
		{"a wrong value", "format: 1\nlease: 5\n", `serve.yaml:2: "5": write a time`},
		{"an alias", "format: &f 1\nlease: *f\n", "serve.yaml:2: write a value"},
		{"a secret", "format: 1\nproviders: {stripe: {secret: whsec_x}}\n", "serve.yaml:2: secret does not stand in the file"},
		{"a password", "format: 1\npassword: whsec_x\n", "serve.yaml:2: password does not stand in the file"},
		{"an unknown provider", "format: 1\nproviders: {strpe: {}}\n", `unknown key "strpe"`},
		{"a provider without a secret", "format: 1\nproviders: {shopify: {}}\n", "provider shopify has no secret: set FLOODPROOF_SECRET_SHOPIFY"},
		{"a secret's file that is not there", "format: 1\nproviders: {shopify: {secret_file: /nowhere/at/all}}\n", "read secret: open"},
		{"a size that is none", "format: 1\nproviders: {stripe: {max_body: 1MB}}\n", `max_body is "1MB"`},
		{"a lane without a name", "format: 1\nlanes: [{provider: stripe}]\n", "the lane has no name"},
		{"a lane of nobody", "format: 1\nlanes: [{name: a, provider: shopify}]\n", "lane a is for events of shopify, which has no secret here"},
		{"a lane named like the default", "format: 1\nlanes: [{name: default}]\n", `"default" cannot be the name`},
		{"a lane with two speeds", "format: 1\nlanes: [{name: a, concurrency: 1}, {name: a, concurrency: 2}]\n", "lane a has a concurrency of 1 and one of 2"},
		{"a type with a stray sign", "format: 1\nlanes: [{name: a, type: 'x?'}]\n", "only * has a meaning"},
		{"steps", "format: 1\nsteps: FETCH it\n", "write PUT or POST"},
		{"a level", "format: 1\nlog_level: loud\n", "use debug, info, warn or error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.yaml, "FLOODPROOF_SINK=http://127.0.0.1:9", "FLOODPROOF_SECRET_STRIPE=whsec_real")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v\nwant an error with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "whsec_") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

// FuzzServeFile: no file crashes the reader, and whatever it takes is whole.
func FuzzServeFile(f *testing.F) {
	f.Add("format: 1\nlanes: [{name: a, provider: stripe, type: 'x*', concurrency: 2}]\n")
	f.Add("format: 1\nproviders: {stripe: {max_body: 1}}\nhosts: [a]\n")
	f.Add("format: 1\nrate: 40/s\nlanes: [{name: a, rate: 5/h, burst: 2, backoff: 1s, max_backoff: 1m, max_attempts: 3, give_up_after: 0}]\nsender_rate: 3\n")
	f.Add("? [a]\n: b\n&x a: *x\n<<: {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := load(t, text, "FLOODPROOF_SINK=http://127.0.0.1:9", "FLOODPROOF_SECRET_STRIPE=whsec_real")
		if err == nil && (c.all.concurrency < 1 || c.all.maxBackoff < c.all.backoff || c.lease <= 0 || c.downstream == "") {
			t.Errorf("took %+v", c)
		}
	})
}
