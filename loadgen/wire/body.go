package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// drainBytes and drainTime bound what Close reads for the sake of the connection.
	drainBytes = 64 << 10
	drainTime  = 100 * time.Millisecond
	// maxChunkLine bounds the line before a chunk; its extensions are read over.
	maxChunkLine = 1 << 10
	// maxChunkDigits keeps the size of a chunk within an int64.
	maxChunkDigits = 15
)

// framing says how a body ends.
type framing uint8

const (
	none framing = iota
	counted
	chunked
	untilClose
)

// body is the body of an answer. It holds the connection until it ends.
type body struct {
	// answer is what it belongs to.
	answer *answer
	in     *input
	// conn is where the input comes from; nil in the parser's own tests.
	conn    *conn
	framing framing
	// reuse: the connection is good for another request after this body.
	reuse bool
	// inChunks: the line end behind the last chunk has not been read yet.
	inChunks bool
	// limit bounds a trailer.
	limit int
	// left is what is missing of the body or of the chunk.
	left int64
	// err is how it ended.
	err error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := b.read(p)
	switch {
	case err != nil:
		b.end(err)
		return n, b.err
	case b.framing == counted && b.left == 0:
		b.end(io.EOF) // The connection need not wait for the next call.
	}
	return n, nil
}

// read reads on in the body's framing; io.EOF is its proper end.
func (b *body) read(p []byte) (int, error) {
	if b.framing == untilClose {
		return b.in.Read(p)
	}
	if b.framing == chunked && b.left == 0 {
		if err := b.nextChunk(); err != nil {
			return 0, err
		}
	}
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, cutShort(err)
}

// nextChunk begins the next chunk, or returns io.EOF when the last one and the trailer are read.
func (b *body) nextChunk() error {
	if b.inChunks {
		if _, err := b.in.line(len("\r")); err != nil {
			return fmt.Errorf("end a chunk of the answer: %w", err)
		}
	}
	line, err := b.in.line(maxChunkLine)
	if err != nil {
		return fmt.Errorf("begin a chunk of the answer: %w", err)
	}
	if b.left, err = parseChunkLine(string(line)); err != nil {
		return err
	}
	b.inChunks = true
	if b.left > 0 {
		return nil
	}
	return b.skipTrailer()
}

// parseChunkLine understands the line before a chunk: its size, and extensions that nobody uses.
func parseChunkLine(line string) (int64, error) {
	number, extensions, _ := strings.Cut(line, ";")
	number = strings.TrimRight(number, " \t") // Some servers pad it.
	size, err := strconv.ParseUint(number, 16, 63)
	if err != nil || number[0] == '+' || len(number) > maxChunkDigits || !isText(extensions) {
		return 0, fmt.Errorf("chunk of the answer begins with %q, want its size", shortened(line))
	}
	return int64(size), nil
}

// skipTrailer reads the header lines behind the last chunk, which nobody asked for. It returns io.EOF when there are no more.
func (b *body) skipTrailer() error {
	for size := 0; size <= b.limit; {
		line, err := b.in.line(b.limit)
		if err != nil {
			return fmt.Errorf("read the trailer of the answer: %w", err)
		}
		if len(line) == 0 {
			return io.EOF
		}
		if _, _, err := parseField(string(line)); err != nil {
			return fmt.Errorf("read the trailer of the answer: %w", err)
		}
		size += len(line)
	}
	return fmt.Errorf("read the trailer of the answer: more than %d bytes", b.limit)
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.err == nil {
		b.end(b.drain())
	}
	b.err = http.ErrBodyReadAfterClose
	return nil
}

// drain reads the rest of a body if that is worth a connection. It returns io.EOF at the proper end.
func (b *body) drain() error {
	if !b.reuse || b.framing == counted && b.left > drainBytes {
		return http.ErrBodyReadAfterClose
	}
	if b.conn != nil && (b.framing == chunked || b.left > int64(b.in.buffered())) {
		b.conn.readUntil(time.Now().Add(drainTime))
	}
	// Through the buffer: what is left may well be there already.
	for budget := int64(drainBytes); budget > 0; {
		if b.in.buffered() == 0 && b.left > 0 {
			if err := b.in.fill(inputBytes); err != nil {
				return err
			}
		}
		skipped := min(b.left, int64(b.in.buffered()))
		b.in.r += int(skipped)
		b.left -= skipped
		budget -= skipped
		switch {
		case b.left > 0:
		case b.framing == counted:
			return io.EOF
		default:
			if err := b.nextChunk(); err != nil {
				return err
			}
			budget-- // A chunk of one byte costs more than that, and an endless row of them must end.
		}
	}
	return http.ErrBodyReadAfterClose
}

// end gives the connection back, for another request if the body is complete.
func (b *body) end(err error) {
	complete := errors.Is(err, io.EOF)
	if b.conn != nil {
		if !complete {
			err = b.conn.explain("read the answer's body", err)
		}
		b.conn.release(complete && b.reuse)
	}
	b.err = err
	b.conn, b.in = nil, nil
}
