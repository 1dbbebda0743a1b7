package tape

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Writer appends requests to a recording. Every line is one write, so that a recorder that is killed has lost nothing but the line that it was
// writing. It is for one goroutine.
type Writer struct {
	out io.WriteCloser
	// size is where the last whole line ends.
	size int64
	// broken is why the file's end could not be repaired: nothing is appended to half a line.
	broken error
}

// Create makes a new recording that its owner alone can read and write. A file that exists is never overwritten.
func Create(path string, h Header) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists, and a recording is never overwritten: name another file or remove this one", path)
	}
	if err != nil {
		return nil, fmt.Errorf("create recording: %w", err)
	}
	w, err := NewWriter(f, h)
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return w, nil
}

// NewWriter writes the header of a recording to out, which Close closes. If out can seek and truncate, a line that could be written in part only is taken back.
// Format and Kind of the header are filled in.
func NewWriter(out io.WriteCloser, h Header) (*Writer, error) {
	h.Format, h.Kind = Format, Kind
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode the header of a recording: %w", err)
	}
	w := &Writer{out: out}
	return w, w.append(text)
}

// Append writes one request. After an error the recording is as it was before, and the next request may be tried.
func (w *Writer) Append(r Request) error {
	text, err := r.encode()
	if err != nil {
		return err
	}
	return w.append(text)
}

func (w *Writer) append(text []byte) error {
	if w.broken != nil {
		return w.broken
	}
	n, err := w.out.Write(append(text, '\n'))
	if err == nil {
		w.size += int64(n)
		return nil
	}
	err = fmt.Errorf("write recording: %w", err)
	if n > 0 {
		w.takeBack(err)
	}
	return err
}

// takeBack removes the part of a line that was written.
func (w *Writer) takeBack(cause error) {
	type file interface {
		io.Seeker
		Truncate(size int64) error
	}
	f, ok := w.out.(file)
	if !ok {
		w.broken = cause
		return
	}
	err := f.Truncate(w.size)
	if err == nil {
		_, err = f.Seek(w.size, io.SeekStart)
	}
	if err != nil {
		w.broken = fmt.Errorf("take back half a line after %w: %w", cause, err)
	}
}

// Size is how many bytes of whole lines were written.
func (w *Writer) Size() int64 { return w.size }

// Close makes the recording durable where it can be, and closes it.
func (w *Writer) Close() error {
	var err error
	if f, ok := w.out.(interface{ Sync() error }); ok {
		err = f.Sync()
	}
	if err = errors.Join(err, w.out.Close()); err != nil {
		return fmt.Errorf("close recording: %w", err)
	}
	return nil
}
