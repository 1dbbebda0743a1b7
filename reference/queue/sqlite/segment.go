package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

const (
	// segmentLimit is the size at which a segment is full. The transaction that reaches it still goes into it.
	segmentLimit = 64 << 20
	// recordHeader precedes each body: its length and its CRC-32C, little-endian, four bytes each.
	recordHeader = 8
	// writtenAhead is how much of a segment is filled with zeros beyond its end, each time that these are used up.
	writtenAhead = 4 << 20
	// maxOpenSegments bounds the descriptors that are kept for reading.
	maxOpenSegments = 16
)

// errDamaged: the bytes of a payload are not those that were stored. It is the job's end and not the queue's: see claim.
var errDamaged = errors.New("stored payload is damaged or missing")

// place is where a body stands. The zero value is no place: segments count from 1.
type place struct{ segment, offset int64 }

// segments are the files that hold the payloads, beside the database, which holds everything else. A handle that enqueues has a segment of its own and
// appends to it; once written, no byte of it changes. So bodies of any size cost the database nothing, and no lock is needed to read them.
//
// One goroutine stages, flushes and discards: the writer. Everything else may be called by anybody.
//
// A segment is filled with zeros some way ahead. To sync bytes that replace others takes no entry in the file system's journal, unlike to sync bytes that make the file
// longer; and the commit of a journal may first have to write what anybody else has just written (data=ordered in https://docs.kernel.org/admin-guide/ext4.html).
// At 70 a second, beside other load, the longest of a thousand answers took 27 to 61 ms in three runs with each sync making the file longer.
//
// Note: bodies in a table of the database were written twice (log and checkpoint), at page granularity, while every other process waited for the
// lock. What they cost here instead is a second sync for each transaction that enqueues, which shows at low rates: at 70 a second, in three interleaved runs of each, the
// median answer was 1.45 to 1.71 ms with bodies in the table and 1.58 to 1.86 with segments, and in the calm runs the 99th percentile 3 and 5 to 8 ms.
type segments struct {
	dir string

	file    *os.File // nil until something is staged
	current place    // where the next staged record begins
	end     int64    // what is written of the file
	ahead   int64    // up to where it is filled with zeros
	staged  []byte

	mu     sync.Mutex
	open   map[int64]*os.File
	recent []int64 // of open, the least recently used first
	closed bool
}

func openSegments(dir string) *segments {
	return &segments{dir: filepath.Join(dir, "payloads"), open: make(map[int64]*os.File)}
}

// next is where the next staged body will stand.
func (s *segments) next() (place, error) {
	if s.file == nil || s.end >= segmentLimit && len(s.staged) == 0 {
		if err := s.begin(); err != nil {
			return place{}, fmt.Errorf("begin a payload segment: %w", err)
		}
	}
	return s.current, nil
}

// begin makes a new segment. Its number is free as soon as nobody else has made a file of that name.
func (s *segments) begin() error {
	number, err := s.last()
	if err != nil {
		return err
	}
	var f *os.File
	for f == nil {
		number++
		f, err = os.OpenFile(s.path(number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := syncDir(s.dir); err != nil {
		return errors.Join(err, f.Close())
	}
	if s.file != nil {
		if err := errors.Join(s.file.Truncate(s.end), s.file.Close()); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	s.file, s.current, s.end, s.ahead = f, place{segment: number}, 0, 0
	return nil
}

// last is the highest number that is taken.
func (s *segments) last() (int64, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	var highest int64
	for _, e := range entries {
		if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil {
			highest = max(highest, n)
		}
	}
	return highest, nil
}

func (s *segments) path(number int64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08d", number))
}

// stage takes a body to the place that next told. It is not written yet.
func (s *segments) stage(body []byte) {
	s.staged = binary.LittleEndian.AppendUint32(s.staged, uint32(len(body)))
	s.staged = binary.LittleEndian.AppendUint32(s.staged, crc32.Checksum(body, castagnoli()))
	s.staged = append(s.staged, body...)
	s.current.offset = s.end + int64(len(s.staged))
}

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// flush writes what is staged, and syncs it if durable. The rows that point to it must not be committed before.
func (s *segments) flush(durable bool) error {
	if len(s.staged) == 0 {
		return nil
	}
	if _, err := s.file.WriteAt(s.staged, s.end); err != nil {
		return fmt.Errorf("write payloads: %w", err)
	}
	if durable {
		if err := s.fill(s.end + int64(len(s.staged))); err != nil {
			return fmt.Errorf("write ahead of payloads: %w", err)
		}
		if err := datasync(s.file); err != nil {
			// What the kernel could not write it may have dropped, and a second sync would call that a success
			// (https://wiki.postgresql.org/wiki/Fsync_Errors): nothing more goes into this file.
			s.end = segmentLimit
			return fmt.Errorf("sync payloads: %w", err)
		}
	}
	s.end += int64(len(s.staged))
	s.discard()
	return nil
}

// fill writes zeros behind what ends at an offset, if those that were there are used up.
func (s *segments) fill(end int64) error {
	if end <= s.ahead {
		return nil
	}
	zeros := make([]byte, 256<<10)
	for s.ahead = end; s.ahead < end+writtenAhead; s.ahead += int64(len(zeros)) {
		if _, err := s.file.WriteAt(zeros, s.ahead); err != nil {
			return err
		}
	}
	return nil
}

// discard forgets what is staged.
func (s *segments) discard() {
	if cap(s.staged) > maxBatchBytes {
		s.staged = nil
	}
	s.staged, s.current.offset = s.staged[:0], s.end
}

// read returns the body of a size at a place. errDamaged says that it is not there as it was stored; any other error that this cannot be told now.
func (s *segments) read(at place, size int) ([]byte, error) {
	record := make([]byte, recordHeader+size)
	for {
		f, err := s.reader(at.segment)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no segment %d", errDamaged, at.segment)
		}
		if err != nil {
			return nil, fmt.Errorf("open payload segment %d: %w", at.segment, err)
		}
		switch _, err := f.ReadAt(record, at.offset); {
		case errors.Is(err, os.ErrClosed) && !s.isClosed():
			continue // others needed the descriptor in the meantime
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: segment %d ends before it does", errDamaged, at.segment)
		case err != nil:
			return nil, fmt.Errorf("read a payload: %w", err)
		}
		break
	}
	body := record[recordHeader:]
	if binary.LittleEndian.Uint32(record) != uint32(size) || binary.LittleEndian.Uint32(record[4:]) != crc32.Checksum(body, castagnoli()) {
		return nil, fmt.Errorf("%w: segment %d, offset %d", errDamaged, at.segment, at.offset)
	}
	return body, nil
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

// close closes all descriptors. Nobody may stage any more.
func (s *segments) close() error {
	var errs []error
	if s.file != nil {
		if s.ahead > s.end {
			errs = append(errs, s.file.Truncate(s.end))
		}
		errs = append(errs, s.file.Close())
	}
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
