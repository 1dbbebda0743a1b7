package tape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/loadgen/provider"
)

const (
	// defaultGrace is how long requests under way may take after the recorder was told to end. It is longer than any provider waits but few.
	defaultGrace = 10 * time.Second
	// headTime bounds how long a client may take for the head of a request.
	headTime = 30 * time.Second
	// queueLength and queueBytes bound what waits for the disk. What does not fit is forwarded like everything else, and counted as missed.
	queueLength = 4096
	queueBytes  = 64 << 20
)

// ErrCutOff says that requests were still under way when the recorder's grace ended, and were cut off.
var ErrCutOff = errors.New("requests under way were cut off")

// Config says how to record. The zero value of every field but To is useful.
type Config struct {
	// To is the endpoint: scheme and host, and a path that is put before that of every request.
	To *url.URL
	// OwnHost sends the endpoint's own name as Host, for endpoints that go by it. The default keeps the Host that the provider sent: some
	// signatures cover it.
	OwnHost bool
	// Provider is who sends everything. Empty: path and headers tell.
	Provider string
	// Limit is the largest body that is stored, in bytes, at most MaxBody. A larger one is forwarded too and recorded by length and SHA-256. 0 means 1 MiB.
	Limit int
	// Scrubber replaces personal data before anything is stored. Nil: requests are stored as they came, with signatures and credentials.
	Scrubber *Scrubber
	// Transport sends to the endpoint. Nil: plain HTTP/1.1 that adds nothing.
	Transport http.RoundTripper
	// Grace is how long requests under way may take when the recorder ends. 0 means ten seconds.
	Grace time.Duration
	// Warn is told at once when something could not be recorded, from one goroutine at a time. Nil: the end tells.
	Warn func(error)
}

// Stats are what a recorder has done so far.
type Stats struct {
	// Requests were forwarded, or tried to be; Stored were written down.
	Requests, Stored int
	// Missed were forwarded and not written down: the disk failed or was too slow.
	Missed int
	// Broken never arrived whole: their sender went or made a mistake. They were neither forwarded nor stored.
	Broken int
	// Opaque were stored without their body, because it is neither JSON nor a form, and Large because it is too large.
	Opaque, Large int
	// Unreachable were answered with 502 by the recorder, as the endpoint could not be reached or gave no answer.
	Unreachable int
	// Left had a sender who went before there was an answer.
	Left int
	// Bytes is the size of the recording.
	Bytes int64
	// ByProvider counts stored requests; the empty name is for those that nobody knows.
	ByProvider map[string]int
}

// Recorder is a reverse proxy that writes down what passes. Make it with [NewRecorder] and call Serve once.
//
// A request's answer never waits for the recording: what is to be stored goes through a bounded queue to one goroutine that scrubs, encodes and writes.
type Recorder struct {
	cfg   Config
	tape  *Writer
	start time.Time
	queue chan Request
	// held are the bytes of bodies in the queue.
	held     atomic.Int64
	handlers sync.WaitGroup

	mu    sync.Mutex
	stats Stats
	// ended: no request is handled any more.
	ended bool
	// failed is the first error of the recording.
	failed error
}

// NewRecorder checks the configuration. The recorder owns the tape from then on, and Serve closes it.
func NewRecorder(cfg Config, tape *Writer) (*Recorder, error) {
	if err := CheckEndpoint(cfg.To); err != nil {
		return nil, err
	}
	if cfg.Limit < 0 || cfg.Limit > MaxBody {
		return nil, fmt.Errorf("limit %d: a recording holds bodies of up to %d bytes", cfg.Limit, MaxBody)
	}
	if cfg.Limit == 0 {
		cfg.Limit = 1 << 20
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport(proxyIdle)
	}
	return &Recorder{cfg: cfg, tape: tape, queue: make(chan Request, queueLength), stats: Stats{ByProvider: map[string]int{}}}, nil
}

// CheckEndpoint reports why requests cannot be sent to a URL. Credentials in it would be a header that nobody sent.
func CheckEndpoint(u *url.URL) error {
	switch {
	case u == nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("the endpoint has to be a URL such as http://127.0.0.1:8080")
	case u.User != nil:
		return errors.New("the endpoint's URL has credentials in it; requests carry their own")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("the endpoint's URL has a query or a fragment; requests bring their own")
	}
	return nil
}

// Serve records what arrives on l until ctx ends. Then it takes no more, lets requests under way come to their end within the grace, and closes the recording. The
// error says what went wrong with the recording, or is ErrCutOff; forwarding has gone on in any case.
func (r *Recorder) Serve(ctx context.Context, l net.Listener) error {
	r.start = time.Now()
	stored := make(chan struct{})
	go func() {
		defer close(stored)
		for req := range r.queue {
			r.store(req)
		}
	}()
	err := r.serve(ctx, l)
	r.leave()
	close(r.queue)
	<-stored
	if t, ok := r.cfg.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return errors.Join(r.failure(), r.tape.Close(), err)
}

// serve runs the HTTP server.
func (r *Recorder) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{Handler: http.HandlerFunc(r.handle), ReadHeaderTimeout: headTime, DisableGeneralOptionsHandler: true}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Grace)
	defer cancel()
	err := server.Shutdown(grace)
	<-ended
	if err != nil {
		return errors.Join(ErrCutOff, server.Close())
	}
	return nil
}

// enter registers a handler, or refuses it because the recorder has ended.
func (r *Recorder) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}
	r.handlers.Add(1)
	return true
}

// leave waits for the last handler: the queue may be closed then.
func (r *Recorder) leave() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.handlers.Wait()
}

// Stats tells how far the recording is.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.ByProvider = maps.Clone(s.ByProvider)
	return s
}

// count changes the statistics.
func (r *Recorder) count(change func(*Stats)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.stats)
}

// failure is what went wrong with the recording, nil if nothing did.
func (r *Recorder) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stats.Missed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d requests are not in the recording: %w", r.stats.Missed, r.stats.Requests, r.failed)
}

// keep hands a request over to be stored, if there is room. It never waits.
func (r *Recorder) keep(req Request) {
	size := int64(len(req.Body.Bytes))
	if r.held.Add(size) <= queueBytes {
		select {
		case r.queue <- req:
			return
		default:
		}
	}
	r.held.Add(-size)
	r.miss(errors.New("the disk is slower than the traffic"))
}

// miss counts a request that is not in the recording.
func (r *Recorder) miss(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Missed++
	if r.failed == nil {
		r.failed = err
		if r.cfg.Warn != nil {
			r.cfg.Warn(fmt.Errorf("a request was forwarded and not recorded: %w", err))
		}
	}
}

// store scrubs and writes one request. Whatever happens to it happens to it alone.
func (r *Recorder) store(req Request) {
	defer r.held.Add(-int64(len(req.Body.Bytes)))
	defer func() {
		if e := recover(); e != nil {
			r.miss(fmt.Errorf("scrub a request: %v", e))
		}
	}()
	opaque := false
	if r.cfg.Scrubber != nil {
		opaque = r.cfg.Scrubber.request(&req)
	}
	if err := r.tape.Append(req); err != nil {
		r.miss(err)
		return
	}
	r.count(func(s *Stats) {
		s.Stored++
		s.ByProvider[req.Provider]++
		s.Bytes = r.tape.Size()
		switch {
		case opaque:
			s.Opaque++
		case req.Body.LeftOut:
			s.Large++
		}
	})
}

// request scrubs all of a request, and reports whether its body had to be left out for it.
func (s *Scrubber) request(req *Request) (opaque bool) {
	contentType := ""
	for _, f := range req.Headers {
		if f.Name == "Content-Type" {
			contentType = f.Value
		}
	}
	req.Headers, req.Redacted = s.Headers(req.Headers)
	req.Path = s.Target(req.Path)
	if req.Body.LeftOut {
		return false
	}
	body, ok := s.Body(contentType, req.Body.Bytes)
	if !ok {
		req.Body = digestOf(req.Body.Bytes)
		return true
	}
	req.Body.Bytes = body
	return false
}

// provider is who sent a request.
func (r *Recorder) provider(req *http.Request) string {
	if r.cfg.Provider != "" {
		return r.cfg.Provider
	}
	return guess(req.URL.Path, req.Header)
}

// Known reports whether a provider's signatures can be made.
func Known(name string) bool {
	_, ok := provider.Find(name)
	return ok
}
