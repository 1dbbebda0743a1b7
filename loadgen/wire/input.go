package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// inputBytes is the size of a read buffer: most answers to a webhook fit in.
	inputBytes = 4 << 10
	// pooledInputBytes is the size up to which a buffer that had to grow is kept.
	pooledInputBytes = 16 << 10
)

// input is a buffered reader that gives out heads and lines as slices of its buffer.
//
// Note: bufio.Reader does not grow, so a head would have to be gathered line by line.
type input struct {
	src io.Reader
	buf []byte
	// buf[r:w] was received and not consumed yet.
	r, w int
}

// buffered is how many bytes wait to be consumed.
func (in *input) buffered() int { return in.w - in.r }

// fill receives at least one more byte. The buffer grows up to limit unconsumed bytes.
func (in *input) fill(limit int) error {
	switch {
	case in.r == in.w:
		in.r, in.w = 0, 0
	case in.w == len(in.buf) && in.r > 0:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	if in.w == len(in.buf) {
		if len(in.buf) >= limit {
			return fmt.Errorf("more than %d bytes where a header or a line should end", limit)
		}
		grown := make([]byte, max(inputBytes, 2*len(in.buf)))
		in.w = copy(grown, in.buf[:in.w])
		in.buf = grown
	}
	n, err := receive(in.src, in.buf[in.w:])
	in.w += n
	return err
}

// receive reads at least one byte or returns an error, never both.
func receive(src io.Reader, p []byte) (int, error) {
	for range 100 {
		n, err := src.Read(p)
		switch {
		case n > 0:
			return n, nil // an error that came with it comes again
		case err != nil:
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// head consumes everything up to and including the next empty line. It is valid until the next call.
func (in *input) head(limit int) ([]byte, error) {
	lineStart := 0 // from in.r
	for {
		pending := in.buf[in.r:in.w]
		for {
			end := bytes.IndexByte(pending[lineStart:], '\n')
			if end < 0 {
				break
			}
			empty := end == 0 || end == 1 && pending[lineStart] == '\r'
			lineStart += end + 1
			if lineStart > limit {
				break
			}
			if empty {
				in.r += lineStart
				return pending[:lineStart], nil
			}
		}
		if len(pending) >= limit {
			return nil, fmt.Errorf("header of more than %d bytes", limit)
		}
		if err := in.fill(limit); err != nil {
			return nil, cutShort(err)
		}
	}
}

// line consumes a line of at most limit bytes, which must end in CR LF, and returns it without them. It is valid until the next call.
func (in *input) line(limit int) ([]byte, error) {
	for {
		pending := in.buf[in.r:in.w]
		end := bytes.IndexByte(pending, '\n')
		if end > limit || end < 0 && len(pending) > limit {
			return nil, fmt.Errorf("line of more than %d bytes", limit)
		}
		if end >= 0 {
			in.r += end + 1
			line, ok := bytes.CutSuffix(pending[:end], []byte{'\r'})
			if !ok {
				return nil, fmt.Errorf("line %q ends in LF alone", line)
			}
			return line, nil
		}
		if err := in.fill(max(limit+1, inputBytes)); err != nil {
			return nil, cutShort(err)
		}
	}
}

// Read implements io.Reader: what is buffered, or else straight from the source.
func (in *input) Read(p []byte) (int, error) {
	if in.r == in.w {
		if len(p) >= len(in.buf) {
			return receive(in.src, p)
		}
		if err := in.fill(inputBytes); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.buf[in.r:in.w])
	in.r += n
	return n, nil
}

// cutShort turns the end of the connection into what it is in the middle of something.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
