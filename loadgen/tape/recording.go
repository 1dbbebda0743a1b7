package tape

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Recording is a file that was read once, checked whole, and is kept as an index: some 32 bytes a request, so that a day of millions of requests fits.
// Its methods may be called by many goroutines at once.
type Recording struct {
	file   *os.File
	header Header
	// spots are in the order of arrival.
	spots []spot
}

// spot is where a request lies in the file.
type spot struct {
	offset       time.Duration
	begin        int64
	length, line int32
}

// Open reads and checks a recording. check, if not nil, is asked about every request; its errors get the number of the line.
func Open(path string, check func(Request) error) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	r := &Recording{file: f}
	if err := r.index(check); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return r, nil
}

func (r *Recording) index(check func(Request) error) error {
	t, err := NewReader(r.file)
	if err != nil {
		return err
	}
	r.header = t.Header()
	for {
		req, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && check != nil {
			if err = check(req); err != nil {
				err = fmt.Errorf("line %d: %w", t.line, err)
			}
		}
		if err != nil {
			return err
		}
		r.spots = append(r.spots, spot{offset: req.Offset, begin: t.begin, length: int32(t.end - t.begin - 1), line: int32(t.line)})
	}
	slices.SortStableFunc(r.spots, func(a, b spot) int { return cmp.Compare(a.offset, b.offset) })
	return nil
}

// Header is the recording's first line.
func (r *Recording) Header() Header { return r.header }

// Len is the number of requests.
func (r *Recording) Len() int { return len(r.spots) }

// Offset is when the i-th request by arrival came, from the start of the recording.
func (r *Recording) Offset(i int) time.Duration { return r.spots[i].offset }

// Load reads the i-th request by arrival.
func (r *Recording) Load(i int) (Request, error) {
	s := r.spots[i]
	text := make([]byte, s.length)
	if _, err := r.file.ReadAt(text, s.begin); err != nil {
		return Request{}, fmt.Errorf("line %d: read again: %w", s.line, err)
	}
	req, err := decode(text)
	if err != nil {
		return Request{}, fmt.Errorf("line %d: changed since it was checked: %w", s.line, err)
	}
	return req, nil
}

// Close closes the file.
func (r *Recording) Close() error { return r.file.Close() }
