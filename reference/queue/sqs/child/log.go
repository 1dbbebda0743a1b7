package child

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const (
	// segmentSize is where a file of the log ends and the next begins; a group of records may go beyond it.
	segmentSize = 16 << 20
	// maxRecord bounds what is believed of a length: ten times the largest message.
	maxRecord = 16 << 20
	// frameHead is a length and a checksum, of four bytes each.
	frameHead = 8
)

// checksum is by the polynomial that processors have an instruction for.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// segment is one file of the log.
type segment struct {
	file *os.File
	path string
	size int64
	// live are messages in it that are not deleted, keepUntil is the instant before which its ids must be known, in microseconds since 1970.
	live      int
	keepUntil int64
}

// place is where a record is.
type place struct {
	segment *segment
	offset  int64 // of its frame
	size    int   // without the frame's head
}

// journal is the log: records in files, in one order. Its methods are called by one goroutine, but for read, which may run beside it.
type journal struct {
	dir      string
	sync     bool
	limit    int64      // segmentSize
	segments []*segment // the last is written to
	next     int
}

// openJournal opens the log in dir and gives all its records to each, in their order. What a crash has left half written at the very end was not acknowledged, and is cut off.
func openJournal(dir string, sync bool, each func(record, place)) (*journal, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	j := &journal{dir: dir, sync: sync, limit: segmentSize}
	for i, name := range names {
		if _, err := fmt.Sscanf(filepath.Base(name), "%d.log", &j.next); err != nil {
			return nil, errors.Join(fmt.Errorf("the log has a file %s, which is not its own: %w", name, err), j.close())
		}
		j.next++
		file, err := os.OpenFile(name, os.O_RDWR, 0o600)
		if err != nil {
			return nil, errors.Join(err, j.close())
		}
		s := &segment{file: file, path: name}
		j.segments = append(j.segments, s)
		if err := s.replay(each, i == len(names)-1); err != nil {
			return nil, errors.Join(fmt.Errorf("read %s: %w", name, err), j.close())
		}
	}
	return j, nil
}

// replay reads a segment from its beginning. Only in the last one may the end be missing.
func (s *segment) replay(each func(record, place), last bool) error {
	r := bufio.NewReaderSize(s.file, 1<<20)
	for {
		body, err := readFrame(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && last {
			if err := s.file.Truncate(s.size); err != nil {
				return err
			}
			return s.file.Sync()
		}
		if err != nil {
			return fmt.Errorf("at offset %d: %w", s.size, err)
		}
		rec, err := readRecord(body)
		if err != nil {
			return fmt.Errorf("at offset %d: %w", s.size, err)
		}
		each(rec, place{segment: s, offset: s.size, size: len(body)})
		s.size += frameHead + int64(len(body))
	}
}

// readFrame reads one record's bytes. io.EOF says that there is none, anything else that it is not whole.
func readFrame(r io.Reader) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxRecord {
		return nil, errRecord
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if checksum(body) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errRecord
	}
	return body, nil
}

// full says that the next group belongs into a new file.
func (j *journal) full() bool { return len(j.segments) == 0 || j.last().size >= j.limit }

func (j *journal) last() *segment { return j.segments[len(j.segments)-1] }

// roll begins a new file.
func (j *journal) roll() error {
	path := filepath.Join(j.dir, fmt.Sprintf("%012d.log", j.next))
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	j.next++
	j.segments = append(j.segments, &segment{file: file, path: path})
	if j.sync {
		return syncDir(j.dir)
	}
	return nil
}

// write appends records to the last file, syncs it, and says where they are. After an error nobody knows what is stored, and the log must not be written any more.
func (j *journal) write(records []record) ([]place, error) {
	s := j.last()
	var buffer []byte
	places := make([]place, len(records))
	for i := range records {
		begin := len(buffer)
		buffer = append(buffer, make([]byte, frameHead)...)
		buffer = records[i].append(buffer)
		body := buffer[begin+frameHead:]
		binary.LittleEndian.PutUint32(buffer[begin:], uint32(len(body)))
		binary.LittleEndian.PutUint32(buffer[begin+4:], checksum(body))
		places[i] = place{segment: s, offset: s.size + int64(begin), size: len(body)}
	}
	if _, err := s.file.WriteAt(buffer, s.size); err != nil {
		return nil, fmt.Errorf("write the log: %w", err)
	}
	if j.sync {
		if err := s.file.Sync(); err != nil {
			return nil, fmt.Errorf("sync the log: %w", err)
		}
	}
	s.size += int64(len(buffer))
	return places, nil
}

// read is the record at a place.
func (p place) read() (record, error) {
	r := io.NewSectionReader(p.segment.file, p.offset, frameHead+int64(p.size))
	body, err := readFrame(r)
	if err != nil {
		return record{}, fmt.Errorf("read the log at offset %d: %w", p.offset, err)
	}
	return readRecord(body)
}

// trim removes the oldest files as long as nothing in them is needed. A deletion stands in the same file as its message or in a later one, so that no message comes back.
func (j *journal) trim(now int64) error {
	for len(j.segments) > 1 && j.segments[0].live == 0 && j.segments[0].keepUntil <= now {
		s := j.segments[0]
		if err := errors.Join(s.file.Close(), os.Remove(s.path)); err != nil {
			return fmt.Errorf("remove a file of the log: %w", err)
		}
		j.segments = j.segments[1:]
	}
	return nil
}

func (j *journal) close() error {
	var errs []error
	for _, s := range j.segments {
		errs = append(errs, s.file.Close())
	}
	j.segments = nil
	return errors.Join(errs...)
}
