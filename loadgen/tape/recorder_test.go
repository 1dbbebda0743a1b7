package tape

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecordsWhatPassed(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := record(t, Config{Scrubber: NewScrubber()}, e.URL)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/webhooks/github?attempt=1", strings.NewReader(`{"zen": "Speak like a human.",  "n": 1.0}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Github-Event": {"ping"}, "X-Hub-Signature-256": {"sha256=00"}, "Cookie": {"a=b"}, "Authorization": {"Basic eA=="},
		"Accept-Encoding": {"identity"}, "X-Forwarded-For": {"203.0.113.9"},
	}
	resp, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	got := s.requests(t)
	if len(got) != 1 {
		t.Fatalf("%d requests recorded, want 1", len(got))
	}
	r := got[0]
	if r.Offset < 0 || r.Duration <= 0 || time.Since(r.At) > time.Minute {
		t.Errorf("at %v, offset %v, duration %v", r.At, r.Offset, r.Duration)
	}
	var forwarded string
	for i, f := range r.Headers {
		if f.Name == "X-Forwarded-For" {
			forwarded = f.Value
			r.Headers[i].Value = "scrubbed"
		}
	}
	if forwarded == "203.0.113.9" || net.ParseIP(forwarded) == nil || len(forwarded) != len("203.0.113.9") {
		t.Errorf("X-Forwarded-For became %q, want another address of the same length", forwarded)
	}
	want := Request{
		At: r.At, Offset: r.Offset, Duration: r.Duration, Provider: "github", Method: "PUT", Path: "/webhooks/github?attempt=1", Status: 418,
		Headers: []Field{
			{"Host", strings.TrimPrefix(s.url, "http://")}, {"Accept-Encoding", "identity"}, {"Content-Length", "41"}, {"Content-Type", "application/json"},
			{"User-Agent", "Go-http-client/1.1"}, {"X-Forwarded-For", "scrubbed"}, {"X-Github-Event", "ping"},
		},
		Redacted: []string{"Authorization", "Cookie", "X-Hub-Signature-256"},
		Body:     Body{Bytes: []byte(`{"zen": "Speak like a human.",  "n": 1.0}`)},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want that its owner alone can read it", info.Mode())
	}
	if _, err := Create(s.path, Header{}); err == nil {
		t.Error("a recording was overwritten")
	}
}

func TestScrubOffKeepsEverything(t *testing.T) {
	e := newEndpoint(t, nil)
	s := record(t, Config{}, e.URL)
	body := "\xff\x00 anna@example.org"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/x", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", "t=1,v1=00")
	resp, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r := s.requests(t)[0]
	if string(r.Body.Bytes) != body || r.Provider != "stripe" || r.Redacted != nil {
		t.Errorf("recorded %+v, want everything", r)
	}
	if text := s.text(t); !strings.Contains(text, "t=1,v1=00") || !strings.Contains(text, `"scrubbed":false`) {
		t.Errorf("recording:\n%s", text)
	}
}

// TestWhatCannotBeScrubbed is stored by length and hash only, and what is too large too; both arrive whole.
func TestWhatCannotBeScrubbed(t *testing.T) {
	e := newEndpoint(t, nil)
	s := record(t, Config{Scrubber: NewScrubber(), Limit: 1000}, e.URL)
	c := client(t)
	bodies := map[string]string{
		"/xml":  "<person><email>anna@example.org</email></person>",
		"/json": `{"email": "anna@example.org", cut`,
		"/big":  strings.Repeat("x", 1001),
		"/huge": strings.Repeat("y", 3<<20),
		"/fits": `["` + strings.Repeat("z", 996) + `"]`,
	}
	for path, body := range bodies {
		post(t, c, s.url+path, "application/json", body)
	}
	for _, got := range e.all() {
		if string(got.body) != bodies[got.uri] {
			t.Errorf("%s: %d bytes arrived, want %d", got.uri, len(got.body), len(bodies[got.uri]))
		}
	}
	for _, r := range s.requests(t) {
		sum := sha256.Sum256([]byte(bodies[r.Path]))
		want := Body{LeftOut: true, Length: int64(len(bodies[r.Path])), SHA256: hex.EncodeToString(sum[:])}
		if r.Path == "/fits" {
			want = Body{Bytes: []byte(bodies[r.Path])}
		}
		if diff := cmp.Diff(want, r.Body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.Path, diff)
		}
	}
	if got := s.r.Stats(); got.Opaque != 2 || got.Large != 2 || got.Stored != 5 {
		t.Errorf("%+v, want 2 opaque and 2 large of 5 stored", got)
	}
	if strings.Contains(s.text(t), "anna") {
		t.Error("the recording has a mail address")
	}
}

func TestEndpointDown(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	s := record(t, Config{}, "http://"+addr)
	if got := post(t, client(t), s.url+"/a", "text/plain", "x"); got != http.StatusBadGateway {
		t.Errorf("status %d, want 502", got)
	}
	if r := s.requests(t)[0]; r.Status != http.StatusBadGateway || !r.Unreachable {
		t.Errorf("recorded status %d, unreachable %v, want 502, true", r.Status, r.Unreachable)
	}
}

// TestEndpointBreaksOff ends an answer in its middle: the sender must not take half of it for the whole.
func TestEndpointBreaksOff(t *testing.T) {
	e := newEndpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	s := record(t, Config{}, e.URL)
	resp, err := client(t).Post(s.url+"/a", "text/plain", strings.NewReader("x"))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("half an answer looked like a whole one")
	}
	if r := s.requests(t)[0]; string(r.Body.Bytes) != "x" {
		t.Errorf("recorded %+v", r)
	}
}

// TestSenderLeaves gives a request up before its answer: the endpoint sees that, and the request is recorded without a status.
func TestSenderLeaves(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan struct{})
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		close(left)
	})
	s := record(t, Config{}, e.URL)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/a", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := client(t).Do(req); err == nil {
		resp.Body.Close()
		t.Fatal("an answer, want none")
	}
	<-left
	if r := s.requests(t)[0]; r.Status != 0 || r.Unreachable || string(r.Body.Bytes) != "x" {
		t.Errorf("recorded %+v, want status 0", r)
	}
}

// fullDisk is a file on a disk that fills up in the middle of a line and has room again later.
type fullDisk struct {
	bytes.Buffer
	mu     sync.Mutex
	room   int
	broken atomic.Bool
}

var errFull = errors.New("no space left on device")

func (d *fullDisk) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.room; n < len(b) {
		d.room = 1 << 20
		d.Buffer.Write(b[:n])
		return n, errFull
	}
	d.room -= len(b)
	return d.Buffer.Write(b)
}

func (d *fullDisk) Close() error { return nil }

func (d *fullDisk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken.Load() {
		return errors.New("input/output error")
	}
	d.Buffer.Truncate(int(size))
	return nil
}

func (d *fullDisk) Seek(offset int64, _ int) (int64, error) { return offset, nil }

func TestDiskFailsForwardingGoesOn(t *testing.T) {
	for _, broken := range []bool{false, true} {
		e := newEndpoint(t, nil)
		disk := &fullDisk{room: 500}
		disk.broken.Store(broken)
		tape, err := NewWriter(disk, Header{})
		if err != nil {
			t.Fatal(err)
		}
		var warned atomic.Int32
		s := recordTo(t, Config{Warn: func(error) { warned.Add(1) }}, e.URL, tape)
		c := client(t)
		for i, n := range []int{10, 1000, 10} {
			if got := post(t, c, s.url+"/a", "text/plain", strings.Repeat("x", n)); got != http.StatusOK {
				t.Errorf("request %d: status %d, want 200", i, got)
			}
		}
		err = s.finish()
		if !errors.Is(err, errFull) {
			t.Errorf("error %v, want that of the disk", err)
		}
		stored := 2
		if broken {
			stored = 1 // nothing can follow half a line
		}
		if got := s.r.Stats(); got.Requests != 3 || got.Stored != stored || got.Missed != 3-stored || warned.Load() != 1 {
			t.Errorf("%+v, warned %d times; want %d stored and one warning", got, warned.Load(), stored)
		}
		if broken {
			continue
		}
		r, err := NewReader(&disk.Buffer)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := r.Next(); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("behind the second request: %v, want the end", err)
		}
	}
}

// TestGrace ends the recorder while requests are under way: one that ends in time is answered, one that does not is cut off.
func TestGrace(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	e := newEndpoint(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
	})
	for _, tt := range []struct {
		grace time.Duration
		want  error
		let   bool
	}{{time.Minute, nil, true}, {time.Millisecond, ErrCutOff, false}} {
		s := record(t, Config{Grace: tt.grace}, e.URL)
		c := client(t)
		answered := make(chan error, 1)
		go func() {
			resp, err := c.Post(s.url+"/a", "text/plain", strings.NewReader("x"))
			if err == nil {
				resp.Body.Close()
			}
			answered <- err
		}()
		<-arrived
		s.end()
		if tt.let {
			goOn <- struct{}{}
		}
		if err := <-s.done; !errors.Is(err, tt.want) {
			t.Errorf("grace %v: error %v, want %v", tt.grace, err, tt.want)
		}
		if err := <-answered; (err == nil) != tt.let {
			t.Errorf("grace %v: the sender got error %v", tt.grace, err)
		}
		if got := s.r.Stats(); got.Stored != 1 {
			t.Errorf("grace %v: %+v, want the request stored", tt.grace, got)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	good, err := url.Parse("http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []Config{{}, {To: good, Limit: -1}, {To: good, Limit: MaxBody + 1}} {
		if _, err := NewRecorder(cfg, nil); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "such", "folder"), Header{}); err == nil {
		t.Error("a recording in no folder")
	}
}

func TestOwnHost(t *testing.T) {
	e := newEndpoint(t, nil)
	s := record(t, Config{OwnHost: true}, e.URL+"/base/")
	post(t, client(t), s.url+"/a?b", "text/plain", "x")
	if got := e.all()[0]; got.host != strings.TrimPrefix(e.URL, "http://") || got.uri != "/base/a?b" {
		t.Errorf("the endpoint saw %s at %s, want its own name and the path behind its own", got.uri, got.host)
	}
}
