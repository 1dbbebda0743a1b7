package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

const (
	// segmentLimit is the size at which a segment is full. The write that reaches it still goes into it.
	segmentLimit = 64 << 20
	// maxOpenSegments bounds the descriptors that are kept for reading.
	maxOpenSegments = 16
)

// place is where a record stands. The zero value is no place: segments count from 1.
type place struct{ segment, offset int64 }

// segments are the files of the log. A handle that enqueues has a segment of its own, which it alone appends to (intake.go); once written, no byte of it changes, so
// that no lock is needed to read. Methods may be called concurrently.
type segments struct {
	dir string
	// synced says how far each segment has reached the disk: eight bytes each, at eight times its number. It is written after the sync and before the
	// answer, and not synced itself: other processes read it, and after a loss of power it tells at most too little.
	synced *os.File

	mu     sync.Mutex
	open   map[int64]*os.File
	recent []int64 // of open, the least recently used first
	closed bool
}

func openSegments(dir string) (*segments, error) {
	s := &segments{dir: filepath.Join(dir, "log"), open: make(map[int64]*os.File)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	s.synced, err = os.OpenFile(filepath.Join(s.dir, "synced"), os.O_RDWR|os.O_CREATE, 0o600)
	return s, err
}

func (s *segments) path(number int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08d", number))
}

// publish tells everybody that a segment is on the disk up to an offset.
func (s *segments) publish(number, end int64) error {
	_, err := s.synced.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(end)), 8*number)
	return err
}

// ends is what was published, by number.
func (s *segments) ends() ([]int64, error) {
	info, err := s.synced.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size()/8*8)
	if _, err := s.synced.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	ends := make([]int64, len(b)/8)
	for i := range ends {
		ends[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return ends, nil
}

// numbers are those of all segments, in order.
func (s *segments) numbers() ([]int64, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// create makes a new segment, locked for as long as its file is open. Its number is free as soon as nobody else has made a file of that name.
func (s *segments) create() (*os.File, int64, error) {
	numbers, err := s.numbers()
	if err != nil {
		return nil, 0, err
	}
	number := int64(0)
	if len(numbers) > 0 {
		number = numbers[len(numbers)-1]
	}
	for {
		number++
		f, err := os.OpenFile(s.path(number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		// Whoever looks for segments without an owner may have it for a moment, and leaves an empty one alone.
		if err := errors.Join(lockFile(f), syncDir(s.dir)); err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, number, nil
	}
}

// read returns the record of a size at a place. errDamaged says that it is not there as it was stored; any other error that this cannot be told now.
func (s *segments) read(at place, size int) ([]byte, error) {
	b := make([]byte, size)
	n, err := s.readAt(b, at)
	if err != nil {
		return nil, err
	}
	record := cut(b[:n])
	if len(record) != size {
		return nil, fmt.Errorf("%w: segment %d, offset %d", errDamaged, at.segment, at.offset)
	}
	return record, nil
}

// readAt fills b, or what of it the segment has.
func (s *segments) readAt(b []byte, at place) (int, error) {
	for {
		f, err := s.reader(at.segment)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("%w: there is no segment %d", errDamaged, at.segment)
		}
		if err != nil {
			return 0, fmt.Errorf("open segment %d: %w", at.segment, err)
		}
		n, err := f.ReadAt(b, at.offset)
		switch {
		case errors.Is(err, os.ErrClosed) && !s.isClosed():
			continue // others needed the descriptor in the meantime
		case err != nil && !errors.Is(err, io.EOF):
			return n, fmt.Errorf("read segment %d: %w", at.segment, err)
		}
		return n, nil
	}
}

// reader lends a descriptor, which may be closed at any time by another call.
func (s *segments) reader(number int64) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	f, ok := s.open[number]
	if ok {
		if last := len(s.recent) - 1; s.recent[last] != number {
			i := slices.Index(s.recent, number)
			s.recent = append(slices.Delete(s.recent, i, i+1), number)
		}
		return f, nil
	}
	f, err := os.Open(s.path(number))
	if err != nil {
		return nil, err
	}
	if len(s.recent) == maxOpenSegments {
		_ = s.open[s.recent[0]].Close() // it was only read
		delete(s.open, s.recent[0])
		s.recent = slices.Delete(s.recent, 0, 1)
	}
	s.open[number] = f
	s.recent = append(s.recent, number)
	return f, nil
}

func (s *segments) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// bytes is the size of all segments, of all handles.
func (s *segments) bytes() (total int64, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// close closes all descriptors.
func (s *segments) close() error {
	errs := []error{s.synced.Close()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, f := range s.open {
		errs = append(errs, f.Close())
	}
	clear(s.open)
	s.recent = nil
	return errors.Join(errs...)
}
