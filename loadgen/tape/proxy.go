package tape

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// proxyIdle is how long a connection to the endpoint is kept without use. It is shorter than what servers allow (Node.js closes after five seconds, gunicorn
	// after two), because a request that meets such a close half-way cannot be sent again and would be lost for the recorder's sake.
	proxyIdle = time.Second
	// dialTime bounds how long connecting to the endpoint may take.
	dialTime = 10 * time.Second
)

// newTransport is HTTP/1.1 that adds nothing to a request: no Accept-Encoding, no proxy of the environment.
func newTransport(idle time.Duration) *http.Transport {
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTime}).DialContext,
		Protocols:              http1,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        idle,
		TLSHandshakeTimeout:    dialTime,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// handle forwards one request and hands it over to be stored.
func (r *Recorder) handle(w http.ResponseWriter, req *http.Request) {
	if !r.enter() {
		panic(http.ErrAbortHandler)
	}
	defer r.handlers.Done()
	arrived := time.Now()
	target, ok := targetOf(req)
	if !ok {
		http.Error(w, "floodproof record forwards requests that name a path", http.StatusBadRequest)
		r.count(func(s *Stats) { s.Broken++ })
		return
	}
	in := &incoming{limit: r.cfg.Limit, src: req.Body}
	if err := in.read(); err != nil {
		http.Error(w, "floodproof record: the request's body did not arrive", http.StatusBadRequest)
		r.count(func(s *Stats) { s.Broken++ })
		return
	}
	rec := Request{
		At: arrived.UTC(), Offset: arrived.Sub(r.start), Provider: r.provider(req), Method: req.Method, Path: asciiTarget(target),
		Headers: fieldsOf(req),
	}
	r.count(func(s *Stats) { s.Requests++ })
	resp, err := r.cfg.Transport.RoundTrip(r.outgoing(req, target, in)) //nolint:bodyclose // answer closes it
	rec.Duration = time.Since(arrived)
	defer func() { r.finish(rec, in) }() // also when the answer breaks off, which is a panic
	switch {
	case err == nil:
		rec.Status = resp.StatusCode
		answer(w, resp)
	case req.Context().Err() != nil:
		r.count(func(s *Stats) { s.Left++ })
	default:
		rec.Status, rec.Unreachable = http.StatusBadGateway, true
		r.count(func(s *Stats) { s.Unreachable++ })
		http.Error(w, "floodproof record: the endpoint does not answer", http.StatusBadGateway)
	}
}

// finish completes what is known of a request and hands it over.
func (r *Recorder) finish(rec Request, in *incoming) {
	body, ok := in.body()
	if !ok {
		r.count(func(s *Stats) { s.Broken++ })
		return
	}
	rec.Body = body
	r.keep(rec)
}

// targetOf is the request target as it came.
func targetOf(req *http.Request) (string, bool) {
	if strings.HasPrefix(req.RequestURI, "/") {
		return req.RequestURI, true
	}
	if req.Method == http.MethodConnect || req.URL.Scheme == "" {
		return "", false // CONNECT, OPTIONS *
	}
	target := req.URL.RequestURI() // The absolute form, as to a forward proxy.
	return target, strings.HasPrefix(target, "/")
}

// asciiTarget percent-encodes the bytes that a file in UTF-8 could not hold.
func asciiTarget(target string) string {
	var out strings.Builder
	for i := range len(target) {
		if c := target[i]; c >= 0x7f || c <= ' ' {
			fmt.Fprintf(&out, "%%%02X", c)
		} else {
			out.WriteByte(c)
		}
	}
	return out.String()
}

// fieldsOf are the headers of a request in the order of their names.
func fieldsOf(req *http.Request) []Field {
	fields := []Field{{"Host", req.Host}}
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		for _, value := range req.Header[name] {
			fields = append(fields, Field{name, value})
		}
	}
	return fields
}

// join puts the endpoint before a request target, byte for byte. A target that begins with two slashes is the exception: net/url takes such an Opaque for a host, so
// that it goes through the parsed form.
func join(to *url.URL, target string) (*url.URL, error) {
	target = strings.TrimSuffix(to.EscapedPath(), "/") + target
	if !strings.HasPrefix(target, "//") {
		return &url.URL{Scheme: to.Scheme, Host: to.Host, Opaque: target}, nil
	}
	path, query, found := strings.Cut(target, "?")
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	return &url.URL{Scheme: to.Scheme, Host: to.Host, Path: plain, RawPath: path, RawQuery: query, ForceQuery: found && query == ""}, nil
}

// outgoing is the request to the endpoint.
func (r *Recorder) outgoing(req *http.Request, target string, in *incoming) *http.Request {
	u, err := join(r.cfg.To, target)
	if err != nil {
		u = &url.URL{Scheme: r.cfg.To.Scheme, Host: r.cfg.To.Host, Path: target} // net/http has parsed it: there is no error
	}
	out := (&http.Request{
		Method: req.Method, URL: u, Host: req.Host, Header: endToEnd(req.Header), Body: in, ContentLength: req.ContentLength, TransferEncoding: req.TransferEncoding,
		Trailer: req.Trailer, // filled in when the body ends, and sent then
	}).WithContext(req.Context())
	if in.whole && len(in.head) == 0 && req.ContentLength == 0 {
		out.Body = http.NoBody // anything else would be sent as an empty chunked body
		if _, ok := req.Header["Content-Length"]; ok {
			out.TransferEncoding = []string{"identity"} // how net/http is told to send a length of 0 with every method
		}
	}
	if r.cfg.OwnHost {
		out.Host = r.cfg.To.Host
	}
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // keeps net/http from adding its own
	}
	return out
}

// hopByHop are the headers that belong to one connection (RFC 9110, section 7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// endToEnd is a copy of the headers without those that end at a proxy.
func endToEnd(h http.Header) http.Header {
	out := maps.Clone(h)
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			delete(out, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for _, name := range hopByHop {
		delete(out, name)
	}
	return out
}

// answer passes the endpoint's answer on as it comes.
func answer(w http.ResponseWriter, resp *http.Response) {
	defer func() { _ = resp.Body.Close() }() // read to its end, or broken
	h := w.Header()
	maps.Copy(h, endToEnd(resp.Header))
	for _, added := range []string{"Date", "Content-Type"} {
		if _, ok := h[added]; !ok {
			h[added] = nil // keeps net/http from adding its own
		}
	}
	w.WriteHeader(resp.StatusCode)
	var dst io.Writer = w
	if resp.ContentLength < 0 {
		dst = flusher{w, http.NewResponseController(w)}
	}
	if _, err := io.Copy(dst, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // half an answer must not look like a whole one
	}
	for name, values := range resp.Trailer {
		h[http.TrailerPrefix+name] = values
	}
}

// flusher sends on what it gets at once: an answer of unknown length may be one that trickles.
type flusher struct {
	io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (f flusher) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	if err == nil {
		err = f.control.Flush()
	}
	return n, err
}

// incoming is the body of a request on its way through. What fits the limit is read before anything is forwarded, so that it is stored whole whatever the
// endpoint does with it; the rest of a larger one streams through and leaves its hash.
//
// It has no GetBody, so that net/http cannot send a request twice when a connection dies.
type incoming struct {
	limit int
	src   io.Reader
	head  []byte
	// whole: head is everything.
	whole  bool
	unread bytes.Reader

	mu     sync.Mutex
	hash   hash.Hash
	length int64
	ended  bool
	closed bool
}

// read takes in what fits the limit.
func (in *incoming) read() error {
	head, err := io.ReadAll(io.LimitReader(in.src, int64(in.limit)+1))
	if err != nil {
		return err
	}
	in.head, in.whole = head, len(head) <= in.limit
	in.unread.Reset(head)
	in.length = int64(len(head))
	if !in.whole {
		in.hash = sha256.New()
		in.hash.Write(head)
	}
	return nil
}

// Read implements io.Reader for the transport.
func (in *incoming) Read(p []byte) (int, error) {
	if in.unread.Len() > 0 {
		return in.unread.Read(p)
	}
	if in.whole {
		return 0, io.EOF
	}
	n, err := in.src.Read(p)
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.closed {
		in.hash.Write(p[:n])
		in.length += int64(n)
		in.ended = err == io.EOF
	}
	return n, err
}

// Close implements io.Closer. The server closes the source.
func (in *incoming) Close() error { return nil }

// body is what is stored of it, or false if it was too large to be kept and was not read to its end. Nothing is added to it afterwards.
func (in *incoming) body() (Body, bool) {
	if in.whole {
		return Body{Bytes: in.head}, true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	return Body{LeftOut: true, Length: in.length, SHA256: hex.EncodeToString(in.hash.Sum(nil))}, in.ended
}

// digestOf is what is stored of a body that cannot be.
func digestOf(body []byte) Body {
	sum := sha256.Sum256(body)
	return Body{LeftOut: true, Length: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
}
