package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"floodproof/reference/queue"
)

// The defaults of a SinkConfig.
const (
	DefaultCallTimeout = 5 * time.Second
	DefaultMaxIdle     = 64
)

// SinkConfig is what a SinkHandler needs. URL must be set.
type SinkConfig struct {
	// URL is the base of the downstream, such as "http://127.0.0.1:9000/token".
	URL string
	// Timeout bounds one call, from its start to the end of the answer. 0: DefaultCallTimeout.
	Timeout time.Duration
	// MaxIdle is how many idle connections are kept for reuse; best the worker's concurrency. 0: DefaultMaxIdle.
	MaxIdle int
}

// SinkHandler is a Handler that performs an event's effect: one POST {URL}/effects/{event id} with the event id as Idempotency-Key.
// It is safe for concurrent use.
//
// One Handle is at most one request on the wire. Whether to try again is decided by the worker alone, where the attempt is
// counted, spaced and kept in the queue; a client that resends behind its back would double every effect of a downstream without idempotency keys.
type SinkHandler struct {
	transport *http.Transport
	base      string
	user      *url.Userinfo // of the URL; nil for none
	timeout   time.Duration
}

// NewSinkHandler checks the configuration and makes the handler.
func NewSinkHandler(cfg SinkConfig) (*SinkHandler, error) {
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		// The URL may hold a token, so it is not repeated here.
		return nil, errors.New("configure sink: URL must be http://host[/path] or https://host[/path]")
	}
	if cfg.Timeout < 0 || cfg.MaxIdle < 0 {
		return nil, errors.New("configure sink: Timeout and MaxIdle must not be negative")
	}
	idle := orDefault(cfg.MaxIdle, DefaultMaxIdle)
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		MaxIdleConns:        idle,
		MaxIdleConnsPerHost: idle, // The default of 2 would open and close a connection for nearly every call of a busy worker.
		IdleConnTimeout:     30 * time.Second,
		TLSHandshakeTimeout: 5 * time.Second,
		DisableCompression:  true, // What it says is short, and mostly thrown away.
	}
	return &SinkHandler{transport: transport, base: strings.TrimSuffix(cfg.URL, "/"), user: base.User, timeout: orDefault(cfg.Timeout, DefaultCallTimeout)}, nil
}

// Close closes idle connections. Calls under way are not touched.
func (s *SinkHandler) Close() { s.transport.CloseIdleConnections() }

// effectNote is the body of a call.
type effectNote struct {
	Resource string `json:"resource"`
	Version  int64  `json:"version"`
}

// Handle makes the one call for this lease. A failure after the request was sent leaves open whether the effect was taken;
// the key makes it safe to ask again.
func (s *SinkHandler) Handle(ctx context.Context, lease queue.Lease) error {
	return s.call(ctx, lease, Step{})
}

// call makes one call, for a step of the lease or, if it has no name, for all of it.
func (s *SinkHandler) call(ctx context.Context, lease queue.Lease, step Step) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := s.request(ctx, lease, step)
	if err != nil {
		return Permanent(fmt.Errorf("call downstream: %w", withoutURL(err)))
	}
	// Not by an http.Client, which copies the request to be able to follow a redirect. A redirect is a second request, and would turn the POST into a GET.
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("call downstream: %w", withoutURL(err))
	}
	defer func() { _ = resp.Body.Close() }() // There is nothing to lose in it.
	var said []byte
	if !success(resp.StatusCode) {
		said, _ = io.ReadAll(io.LimitReader(resp.Body, maxSaid))
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrain) // Read to its end, so that the connection can be used again.
	return classify(resp, said)
}

func success(status int) bool { return status >= 200 && status < 300 }

// maxSaid is how much of an answer is kept as the reason of a failure; maxDrain how much more is read to save the connection.
const (
	maxSaid  = 256
	maxDrain = 64 << 10
)

func (s *SinkHandler) request(ctx context.Context, lease queue.Lease, step Step) (*http.Request, error) {
	note, err := json.Marshal(effectNote{Resource: lease.Resource, Version: lease.Version})
	if err != nil {
		return nil, err
	}
	path, key := pathSegment(lease.EventID), lease.EventID
	if step.Name != "" {
		path += "/" + pathSegment(step.Name)
		key += "/" + step.Name
	}
	req, err := http.NewRequestWithContext(ctx, step.method(), s.base+"/effects/"+path, bytes.NewReader(note))
	if err != nil {
		return nil, err
	}
	// net/http sends a request again by itself when a reused connection turns out to be closed, and an Idempotency-Key tells it that it may. It cannot
	// without GetBody: a body that was begun is not repeatable then.
	req.GetBody = nil
	values := []string{"application/json", headerValue(key)}
	req.Header["Content-Type"] = values[:1:1]
	if !step.Upsert {
		req.Header["Idempotency-Key"] = values[1:]
	}
	if s.user != nil {
		password, _ := s.user.Password()
		req.SetBasicAuth(s.user.Username(), password)
	}
	return req, nil
}

// pathSegment encodes an id so that it is one segment, whatever is in it. A lone dot or two would be resolved
// away by clients and servers, so those are encoded too, although RFC 3986 does not ask for it.
func pathSegment(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}

// headerValue returns an id as it is if a header can carry it unchanged, else percent-encoded.
func headerValue(id string) string {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return url.QueryEscape(id)
		}
	}
	return id
}

// withoutURL takes the URL out of a client's error: it can hold a token, and the reason is stored and shown.
func withoutURL(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		return wrapped.Err
	}
	return err
}

// The waits when a downstream asks to come again without saying when.
const (
	throttledWait = time.Second
	inFlightWait  = 250 * time.Millisecond
)

// classify turns an answer into the error that the worker decides by.
//
//	2xx                      done
//	429, 503 + Retry-After   again after that time, and nobody calls until then
//	409                      the same key is in flight: again soon
//	408, 425                 again: these say nothing about the request itself
//	other 4xx                permanent
//	anything else            again
func classify(resp *http.Response, said []byte) error {
	status := resp.StatusCode
	if success(status) {
		return nil
	}
	err := fmt.Errorf("downstream answered %d: %q", status, bytes.TrimSpace(said))
	wait, told := parseRetryAfter(resp.Header.Get("Retry-After"), time.Now())
	switch {
	case status == http.StatusTooManyRequests && !told:
		return &RetryAfterError{After: throttledWait, Everyone: true, Err: err}
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && told:
		return &RetryAfterError{After: wait, Everyone: true, Err: err}
	case status == http.StatusConflict:
		return &RetryAfterError{After: inFlightWait, Err: err}
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return err
	case status >= 400 && status < 500:
		return Permanent(err)
	}
	return err
}

// parseRetryAfter reads a Retry-After header: seconds or an HTTP date (RFC 9110, section 10.2.3). A date that has passed is no wait.
func parseRetryAfter(value string, now time.Time) (time.Duration, bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(at.Sub(now), 0), true
}
