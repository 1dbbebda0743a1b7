package tape

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Reader reads a recording strictly, line by line: an unknown member, a missing one, a line without an end are errors with the number of their line. It
// is for one goroutine.
type Reader struct {
	in     *bufio.Reader
	header Header
	// line is the number of the line that was read last, begin and end where it lies.
	line       int
	begin, end int64
}

// NewReader reads the header. Its error says why r holds no recording that this package understands.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{in: bufio.NewReaderSize(r, 64<<10)}
	text, err := t.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("line 1: empty: not a recording")
	}
	if err != nil {
		return nil, err
	}
	// The format comes first: a newer one may have members that are unknown here, and what is wrong then is not the member.
	var first Header
	if err := json.Unmarshal(text, &first); err != nil {
		return nil, fmt.Errorf("line 1: not a recording: %w", err)
	}
	if err := first.check(); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if err := strict(text, &t.header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	return t, nil
}

// Header is the first line.
func (t *Reader) Header() Header { return t.header }

// Line is the number of the line that was read last, from 1.
func (t *Reader) Line() int { return t.line }

// Next reads the next request. At the end of the recording it returns io.EOF, itself.
func (t *Reader) Next() (Request, error) {
	text, err := t.next()
	if err != nil {
		return Request{}, err
	}
	r, err := decode(text)
	if err != nil {
		return Request{}, fmt.Errorf("line %d: %w", t.line, err)
	}
	return r, nil
}

// next reads the next line without its end. The bytes are the caller's.
func (t *Reader) next() ([]byte, error) {
	var text []byte
	for {
		part, err := t.in.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text) > maxLine:
			return nil, fmt.Errorf("line %d: longer than %d bytes: not a recording", t.line+1, maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(text) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d: cut short: the recorder was killed while it wrote; remove this line to use the others", t.line+1)
		case err != nil:
			return nil, fmt.Errorf("line %d: read: %w", t.line+1, err)
		}
		t.line++
		t.begin, t.end = t.end, t.end+int64(len(text))
		return text[:len(text)-1], nil
	}
}

// strict decodes exactly one JSON value without unknown members.
func strict(text []byte, into any) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("an empty line") // and not the end of the recording
		}
		return err
	}
	if d.InputOffset() != int64(len(bytes.TrimRight(text, " \t\r"))) {
		return errors.New("more than one JSON value in a line")
	}
	return nil
}
