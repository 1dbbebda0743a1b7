package tape

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// started is a recorder that runs.
type started struct {
	url  string
	path string
	r    *Recorder
	end  context.CancelFunc
	done chan error
}

// record starts a recorder in front of an endpoint; finish ends it.
func record(t *testing.T, cfg Config, to string) *started {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tape.jsonl")
	tape, err := Create(path, Header{Scrubbed: cfg.Scrubber != nil, StartedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	s := recordTo(t, cfg, to, tape)
	s.path = path
	return s
}

func recordTo(t *testing.T, cfg Config, to string, tape *Writer) *started {
	t.Helper()
	var err error
	if cfg.To, err = url.Parse(to); err != nil {
		t.Fatal(err)
	}
	r, err := NewRecorder(cfg, tape)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &started{url: "http://" + l.Addr().String(), r: r, end: cancel, done: make(chan error, 1)}
	go func() { s.done <- r.Serve(ctx, l) }()
	t.Cleanup(cancel)
	return s
}

// finish ends the recorder and returns its error.
func (s *started) finish() error {
	s.end()
	return <-s.done
}

// requests ends the recorder and reads what it recorded.
func (s *started) requests(t *testing.T) []Request {
	t.Helper()
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	rec, err := Open(s.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var all []Request
	for i := range rec.Len() {
		r, err := rec.Load(i)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// text is the recording as it lies on the disk.
func (s *started) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// seen is a request as an endpoint saw it.
type seen struct {
	header http.Header
	host   string
	uri    string
	body   []byte
}

// endpoint is a server that keeps what it sees and answers as answer says.
type endpoint struct {
	*httptest.Server
	mu  sync.Mutex
	got []seen
}

func newEndpoint(t *testing.T, answer http.HandlerFunc) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		e.mu.Lock()
		e.got = append(e.got, seen{header: r.Header.Clone(), host: r.Host, uri: r.RequestURI, body: body})
		e.mu.Unlock()
		if answer != nil {
			answer(w, r)
		}
	}))
	t.Cleanup(e.Close)
	return e
}

// all is what the endpoint has seen.
func (e *endpoint) all() []seen {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]seen(nil), e.got...)
}

// client is an HTTP client that the test closes.
func client(t *testing.T) *http.Client {
	t.Helper()
	tr := &http.Transport{DisableCompression: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// post sends a body and returns the status.
func post(t *testing.T, c *http.Client, to, contentType, body string) int {
	t.Helper()
	resp, err := c.Post(to, contentType, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// testSecret is a provider's secret in its own form.
func testSecret(p *provider.Provider) string {
	if p.NewSecret == nil {
		return "whsec_test"
	}
	return p.NewSecret([32]byte{7, 7, 7})
}

// delivery renders and signs a request of a provider.
func delivery(p *provider.Provider, n uint64, to string) *provider.Request {
	r := &provider.Request{Header: http.Header{}}
	e := provider.Event{
		Number: uint32(n), Key: 1000 + n, Draw: 2000 + n*7, ResourceKey: 3000 + n, ResourceDraw: 4000 + n*13, Version: uint32(1 + n%3),
		At: time.Date(2026, 11, 27, 9, 0, int(n), 0, time.UTC),
	}
	p.Render(r, provider.Delivery{Key: 5000 + n, Attempt: 1, Events: []provider.Event{e}})
	p.Sign(r, provider.Signing{Secrets: []string{testSecret(p)}, URL: to, Now: time.Now()})
	return r
}

// send posts a delivery as it is.
func send(t *testing.T, c *http.Client, to string, d *provider.Request) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, bytes.NewReader(d.Body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = d.Header.Clone()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
}
