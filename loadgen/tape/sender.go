package tape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"floodproof/loadgen/provider"
)

const (
	// senderTimeout is how long a sender that nobody knows waits for an answer. Known ones wait as long as they do.
	senderTimeout = 10 * time.Second
	// drainBytes is what is read of an answer's body so that its connection can be used again.
	drainBytes = 64 << 10
	// senderIdle is how long a connection is kept without use.
	senderIdle = 90 * time.Second
)

// Sender sends recorded requests to a target, signed anew. Make it with [NewSender]; it may be used by many goroutines at once.
//
// One call is one request on the wire. Redirects are not followed: no provider that is known here takes one for success.
type Sender struct {
	to        *url.URL
	secrets   map[string][]string
	renewal   *Renewal
	transport http.RoundTripper
}

// SenderConfig says where to send and how. The zero value of every field but To is useful.
type SenderConfig struct {
	// To is the target: scheme and host, and a path that is put before that of every request.
	To *url.URL
	// Secrets are the active signing secrets of each provider, the current one first. Requests of a provider without any are sent without a signature.
	Secrets map[string][]string
	// Renewal gives new ids. Nil: the recorded ones stay.
	Renewal *Renewal
	// Transport sends. Nil: plain HTTP/1.1 that adds nothing.
	Transport http.RoundTripper
}

// NewSender checks the configuration.
func NewSender(cfg SenderConfig) (*Sender, error) {
	if err := CheckEndpoint(cfg.To); err != nil {
		return nil, err
	}
	for name, secrets := range cfg.Secrets {
		if !Known(name) {
			return nil, fmt.Errorf("secret of %q: nobody knows how that provider signs", name)
		}
		if len(secrets) == 0 || slices.Contains(secrets, "") {
			return nil, fmt.Errorf("secret of %s: it is empty", name)
		}
	}
	if cfg.Transport == nil {
		cfg.Transport = newTransport(senderIdle)
	}
	return &Sender{to: cfg.To, secrets: cfg.Secrets, renewal: cfg.Renewal, transport: cfg.Transport}, nil
}

// Close closes connections that are not in use.
func (s *Sender) Close() {
	if t, ok := s.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Transmit implements [Transmitter].
func (s *Sender) Transmit(ctx context.Context, r Request) Answer {
	p, known := provider.Find(r.Provider)
	timeout := senderTimeout
	if known {
		timeout = p.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, signed, err := s.request(ctx, r)
	if err != nil {
		return Answer{At: time.Now(), Unsigned: !signed, Err: err}
	}
	resp, err := s.transport.RoundTrip(req)
	a := Answer{At: time.Now(), Unsigned: !signed}
	if err != nil {
		a.Err, a.TimedOut = err, errors.Is(ctx.Err(), context.DeadlineExceeded)
		return a
	}
	a.Status = resp.StatusCode
	if a.OK = a.Status >= 200 && a.Status <= 299; known {
		a.OK = p.Success(a.Status)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes) // whatever it says, the answer counted when its head was complete
	_ = resp.Body.Close()
	return a
}

// request makes the request to be sent, and says whether it is signed.
func (s *Sender) request(ctx context.Context, r Request) (*http.Request, bool, error) {
	if s.renewal != nil {
		if err := s.renewal.Apply(&r); err != nil {
			return nil, false, err
		}
	}
	u, err := join(s.to, r.Path)
	if err != nil {
		return nil, false, err
	}
	out := provider.Request{Header: s.header(r), Body: bytes.Clone(r.Body.Bytes)}
	signed := false
	if p, ok := provider.Find(r.Provider); ok && len(s.secrets[p.Name]) > 0 {
		full := s.to.Scheme + "://" + s.to.Host + u.RequestURI()
		if signed, err = resign(p, &out, provider.Signing{Secrets: s.secrets[p.Name], URL: full, Now: time.Now()}); err != nil {
			return nil, false, err
		}
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // keeps net/http from adding its own
	}
	req := &http.Request{Method: r.Method, URL: u, Host: s.to.Host, Header: out.Header, ContentLength: int64(len(out.Body)), Body: http.NoBody}
	if len(out.Body) > 0 {
		// Not a reader that net/http knows, which could send it twice.
		req.Body = io.NopCloser(struct{ io.Reader }{bytes.NewReader(out.Body)})
	}
	return req.WithContext(ctx), signed, nil
}

// header are the recorded headers without those that belong to the recorded connection, and without old signatures.
func (s *Sender) header(r Request) http.Header {
	h := http.Header{}
	for _, f := range r.Headers {
		h.Add(f.Name, f.Value)
	}
	h = endToEnd(h)
	h.Del("Host")
	h.Del("Content-Length")
	for _, name := range SignatureHeaders(r.Provider) {
		h.Del(name)
	}
	for name := range h {
		if isSignature(name) {
			delete(h, name)
		}
	}
	return h
}

// isSignature reports headers that sign a request, whoever's they are. Other credentials, of a recording that has them, are sent as they are.
func isSignature(header string) bool {
	return slices.ContainsFunc(splitWords(header), func(word string) bool {
		return word == "signature" || word == "sig" || word == "hmac" || word == "digest"
	}) && !strings.EqualFold(header, "Signature-Agent")
}
