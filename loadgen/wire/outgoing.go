package wire

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
)

const (
	// blockBytes is how much of a request is written at once: nearly every one is a single write.
	blockBytes = 64 << 10
	// pooledOutgoingBytes is the size up to which a buffer that had to grow is kept.
	pooledOutgoingBytes = 2 * blockBytes
)

// outgoing is a request on its way out: a buffer with what is written next, and the body that is not in it yet.
type outgoing struct {
	buf []byte
	// names is room to sort header names in.
	names []string
	// body is nil if there is none.
	body io.Reader
	// first is the first byte of a body that had to be looked at, firstHeld whether it is still to be sent.
	first     [1]byte
	firstHeld bool
	chunked   bool
	// closing: the server will close the connection behind this request.
	closing bool
	// left is what is missing of a body of known length.
	left int64
	// budget is how much of the body may be sent before the cut, step how much at once.
	budget int64
	step   int
	// done: what is in the buffer is the last of it.
	done bool
}

// prepare makes the buffer hold the head and as much of the body as is written with it. Its error means that the request cannot be sent.
func (o *outgoing) prepare(req *http.Request, shape *Shape) error {
	*o = outgoing{buf: o.buf[:0], names: o.names, budget: math.MaxInt64, step: blockBytes}
	if shape.Cut {
		o.budget = shape.CutAfter
	}
	if shape.SlowEvery > 0 {
		o.step = max(shape.SlowBytes, 1)
	}
	if err := o.frame(req, shape.HTTP10); err != nil {
		return err
	}
	if err := o.head(req, shape); err != nil {
		return err
	}
	return o.fill()
}

// frame finds out how the length of the body is told.
func (o *outgoing) frame(req *http.Request, http10 bool) error {
	codings := req.TransferEncoding
	o.chunked = len(codings) == 1 && codings[0] == "chunked"
	switch {
	case len(codings) > 0 && !o.chunked:
		return fmt.Errorf("transfer encoding %q: want chunked or none", codings)
	case len(req.Trailer) > 0:
		return errors.New("trailer: this client sends none")
	case req.Body == nil || req.Body == http.NoBody:
		if req.ContentLength > 0 {
			return fmt.Errorf("content length %d without a body", req.ContentLength)
		}
		o.chunked = false
		return nil
	}
	o.body, o.left = req.Body, req.ContentLength
	if o.left == 0 && !o.chunked {
		// Unknown, or none: net/http.Request does not tell.
		switch _, err := io.ReadFull(o.body, o.first[:]); {
		case errors.Is(err, io.EOF):
			o.body = nil
			return nil
		case err != nil:
			return fmt.Errorf("read the request's body: %w", err)
		}
		o.left, o.firstHeld = -1, true
	}
	o.chunked = o.chunked || o.left < 0
	if o.chunked && http10 {
		return errors.New("HTTP/1.0 has no chunks: set ContentLength")
	}
	return nil
}

// head appends request line and header.
func (o *outgoing) head(req *http.Request, shape *Shape) error {
	if err := o.requestLine(req, shape.HTTP10); err != nil {
		return err
	}
	host, err := hostOf(req)
	if err != nil {
		return err
	}
	names := ownNamesIn(shape.LowerCase)
	o.buf = append(append(append(o.buf, names.host...), host...), "\r\n"...)
	switch {
	case o.chunked:
		o.buf = append(append(o.buf, names.transferEncoding...), "chunked\r\n"...)
	case o.body != nil || req.Method == http.MethodPost || req.Method == http.MethodPut || req.Method == http.MethodPatch:
		o.buf = append(strconv.AppendInt(append(o.buf, names.contentLength...), o.left, 10), "\r\n"...)
	}
	if err := o.fields(req.Header); err != nil {
		return err
	}
	if req.Close && !o.closing {
		o.buf = append(append(o.buf, names.connection...), "close\r\n"...)
	}
	o.closing = o.closing || req.Close || shape.HTTP10
	o.buf = append(o.buf, "\r\n"...)
	return nil
}

// ownNames are the names of the headers that this package adds, each with its colon.
type ownNames struct{ host, contentLength, transferEncoding, connection string }

func ownNamesIn(lowerCase bool) ownNames {
	if lowerCase {
		return ownNames{"host: ", "content-length: ", "transfer-encoding: ", "connection: "}
	}
	return ownNames{"Host: ", "Content-Length: ", "Transfer-Encoding: ", "Connection: "}
}

// requestLine appends the request line.
func (o *outgoing) requestLine(req *http.Request, http10 bool) error {
	method := req.Method
	switch {
	case method == "":
		method = http.MethodGet
	case method == http.MethodConnect:
		return errors.New("method CONNECT: this client makes no tunnels")
	case !isToken(method):
		return fmt.Errorf("method %q is not a token", shortened(method))
	}
	o.buf = append(append(o.buf, method...), ' ')
	start := len(o.buf)
	u := req.URL
	if path := u.EscapedPath(); u.Opaque != "" {
		o.buf = append(o.buf, u.RequestURI()...)
	} else {
		if path == "" {
			path = "/"
		}
		o.buf = append(o.buf, path...)
		if u.ForceQuery || u.RawQuery != "" {
			o.buf = append(append(o.buf, '?'), u.RawQuery...)
		}
	}
	if target := o.buf[start:]; !isVisible(string(target)) { // does not allocate: the string does not outlive the call
		return fmt.Errorf("url: %q has a space or a control character", shortened(string(target)))
	}
	version := " HTTP/1.1\r\n"
	if http10 {
		version = " HTTP/1.0\r\n"
	}
	o.buf = append(o.buf, version...)
	return nil
}

// fields appends the request's own header lines in the order of their names.
func (o *outgoing) fields(header http.Header) error {
	o.names = o.names[:0]
	for name := range header {
		o.names = append(o.names, name)
	}
	slices.Sort(o.names)
	for _, name := range o.names {
		if err := checkName(name); err != nil {
			return err
		}
		connection := isConnection(name)
		for _, value := range header[name] {
			if !isText(value) {
				return fmt.Errorf("header %s: %q has a line end or another control character", name, shortened(value))
			}
			o.buf = append(append(append(append(o.buf, name...), ": "...), value...), "\r\n"...)
			o.closing = o.closing || connection && hasOption(value, "close")
		}
	}
	return nil
}

// fill appends as much of the body as is written next, and finds out whether that is the last of it.
func (o *outgoing) fill() error {
	if o.body == nil || o.budget == 0 {
		o.done = true
		return nil
	}
	room := min(int64(blockBytes), int64(o.step), o.budget)
	if !o.chunked {
		room = min(room, o.left)
	}
	if room > 1 && len(o.buf) > 0 {
		room = max(1, min(room, int64(blockBytes-len(o.buf)))) // The head is in the block already.
	}
	if o.chunked {
		return o.fillChunk(int(room))
	}
	return o.fillCounted(int(room))
}

// fillCounted appends the next bytes of a body of known length, and holds it to that.
func (o *outgoing) fillCounted(room int) error {
	n, err := o.take(room)
	o.left -= int64(n)
	o.budget -= int64(n)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read the request's body: %d bytes short of its content length: %w", o.left, io.ErrUnexpectedEOF)
	case err != nil:
		return fmt.Errorf("read the request's body: %w", err)
	case o.left > 0:
		o.done = o.budget == 0
		return nil
	}
	o.done = true
	switch _, err := io.ReadFull(o.body, o.first[:]); {
	case err == nil:
		return errors.New("read the request's body: it is longer than its content length")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read the request's body: %w", err)
	}
	return nil
}

// fillChunk appends the next chunk of a body of unknown length, and the end if it is one.
func (o *outgoing) fillChunk(room int) error {
	const longest = len("10000\r\n")
	start := len(o.buf)
	o.buf = append(o.buf, "10000\r\n"...)
	n, err := o.take(room)
	o.budget -= int64(n)
	data := o.buf[start+longest:]
	o.buf = o.buf[:start]
	if n > 0 {
		o.buf = append(strconv.AppendInt(o.buf, int64(n), 16), "\r\n"...)
		o.buf = append(append(o.buf, data...), "\r\n"...) // Moves the data by a few bytes at most.
	}
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		o.buf = append(o.buf, "0\r\n\r\n"...)
		o.done = true
	case err != nil:
		return fmt.Errorf("read the request's body: %w", err)
	default:
		o.done = o.budget == 0
	}
	return nil
}

// take appends so many bytes of the body, or what there is of them with the error of io.ReadFull.
func (o *outgoing) take(room int) (int, error) {
	start := len(o.buf)
	o.buf = slices.Grow(o.buf, room)
	into := o.buf[start : start+room]
	held := 0
	if o.firstHeld {
		held = copy(into, o.first[:])
		o.firstHeld = false
	}
	n, err := io.ReadFull(o.body, into[held:])
	o.buf = o.buf[:start+held+n]
	return held + n, err
}
