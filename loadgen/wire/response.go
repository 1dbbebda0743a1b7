package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
)

// answer is a response together with what it is made of, in one piece of memory.
type answer struct {
	response http.Response
	body     body
	empty    empty
	values   [6]string
	// client is whose answer it is; nil in the parser's own tests.
	client *Client
	// text is what was read last, and head what it means: a server says the same again and again.
	text string
	head head
}

// empty is the body of an answer without one, which has given its connection back.
type empty struct{ answer *answer }

// Read implements io.Reader.
func (*empty) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (*empty) Close() error { return nil }

// Recycle gives back the memory of a response, for another one. It is for a caller who looks at thousands of responses a second and keeps none of them. The
// response must have been read to its end or closed; from then on nothing of it may be used, and nothing of its header may have been changed before. Only
// responses of a Client can be recycled; with others it does nothing.
func Recycle(resp *http.Response) {
	var a *answer
	switch b := resp.Body.(type) {
	case *empty:
		a = b.answer
	case *body:
		a = b.answer
	}
	if a == nil || a.client == nil || a.body.conn != nil {
		return
	}
	a.response = http.Response{}
	a.body = body{}
	a.client.answers.Put(a)
}

// takeAnswer returns an answer to be filled in.
func (c *Client) takeAnswer() *answer {
	if a, ok := c.answers.Get().(*answer); ok {
		return a
	}
	return &answer{client: c}
}

// read reads heads up to that of the final answer to a request with this method. What comes behind it is the body's.
func (a *answer) read(in *input, limit int, method string) error {
	for range maxInterim + 1 {
		if final, err := a.next(in, limit, method); final || err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d interim answers", maxInterim)
}

// next reads one head and reports whether it was that of the final answer.
func (a *answer) next(in *input, limit int, method string) (final bool, err error) {
	switch err := a.readHead(in, limit); {
	case err != nil:
		return false, err
	case a.head.code == http.StatusSwitchingProtocols:
		return false, errors.New("answer 101 switches protocols, which no request asked for")
	case a.head.interim():
		return false, nil
	}
	a.become(in, limit, method)
	return true, nil
}

// readHead reads a head.
func (a *answer) readHead(in *input, limit int) error {
	block, err := in.head(limit)
	if err != nil || string(block) == a.text { // which is never empty
		return err
	}
	a.text = ""
	text := string(block)
	if a.head, err = parseHead(text, a.values[:0]); err != nil {
		return err
	}
	a.text = text
	return nil
}

// become makes the response from its head.
func (a *answer) become(in *input, limit int, method string) {
	r, b, h := &a.response, &a.body, &a.head
	r.Status, r.StatusCode, r.Header, r.ContentLength = h.status, h.code, h.header, h.length
	r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/1.1", 1, h.minor
	if h.minor == 0 {
		r.Proto = "HTTP/1.0"
	}
	b.answer, b.in, b.limit, b.reuse = a, in, limit, h.persistent()
	if h.chunked {
		r.TransferEncoding = []string{"chunked"}
		delete(r.Header, "Transfer-Encoding") // as net/http has it
	}
	switch {
	case method == http.MethodHead:
	case h.code == http.StatusNoContent || h.code == http.StatusNotModified:
		r.ContentLength = 0
	case h.chunked:
		b.framing = chunked
	case h.length >= 0:
		b.framing, b.left = counted, h.length
	default:
		b.framing, b.reuse = untilClose, false
	}
	r.Close = !b.reuse
	r.Body = b
	if b.ended() {
		a.empty.answer = a
		r.Body = &a.empty
	}
}

// ended reports whether there is nothing to be read.
func (b *body) ended() bool { return b.framing == none || b.framing == counted && b.left == 0 }
