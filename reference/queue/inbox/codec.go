package inbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

// A message is a header and a body. The header: the bytes "fp", the version of the format, flags, and a CRC-32C of the flags and the body, little-endian. The body, which
// may be compressed: when it was published, in microseconds since 1970 by the publisher's clock, and a state.Command that enqueues.
const (
	headerSize    = 8
	formatVersion = 1
	// flagS2: the body is compressed.
	flagS2 = 1 << 0
)

const (
	// maxRaw bounds a body before it is compressed, and so what a decoder allocates, in bytes. A call that is larger becomes several messages.
	maxRaw = 64 << 20
	// headroom is what a message may need beside a payload: the header, the ids, and the compressor's worst case are within it unless the ids are huge.
	headroom = 16 << 10
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// encoder makes messages of at most limit bytes; 0 is no limit.
type encoder struct{ limit int }

// encode makes one message of the jobs, or, if that is too large, as many as are needed.
func (e encoder) encode(jobs []queue.Job, at time.Time) ([][]byte, error) {
	size := 16
	for i := range jobs {
		size += state.Size(&jobs[i])
	}
	if size <= maxRaw {
		if m := pack(jobs, at, size); e.limit == 0 || len(m) <= e.limit {
			return [][]byte{m}, nil
		}
	}
	if len(jobs) == 1 {
		return nil, fmt.Errorf("event %q of %s needs a message of more than %d bytes: %w", jobs[0].EventID, jobs[0].Provider, e.limit, queue.ErrTooLarge)
	}
	first, err := e.encode(jobs[:len(jobs)/2], at)
	if err != nil {
		return nil, err
	}
	second, err := e.encode(jobs[len(jobs)/2:], at)
	return append(first, second...), err
}

// pack makes one message. Size is about that of the body.
func pack(jobs []queue.Job, at time.Time, size int) []byte {
	body := binary.AppendVarint(make([]byte, 0, size), at.UnixMicro())
	body = state.AppendCommand(body, &state.Command{Op: state.Enqueue, Jobs: jobs})
	m := make([]byte, headerSize+max(s2.MaxEncodedLen(len(body)), len(body)))
	m[0], m[1], m[2] = 'f', 'p', formatVersion
	if packed := s2.Encode(m[headerSize:], body); len(packed) < len(body) {
		m[3] = flagS2
		m = m[:headerSize+len(packed)]
	} else {
		m = m[:headerSize+copy(m[headerSize:], body)]
	}
	binary.LittleEndian.PutUint32(m[4:], checksum(m))
	return m
}

func checksum(m []byte) uint32 {
	return crc32.Update(crc32.Checksum(m[3:4], castagnoli()), castagnoli(), m[headerSize:])
}

// decode reads a message. It keeps nothing of it.
func decode(m []byte) (jobs []queue.Job, at time.Time, err error) {
	switch {
	case len(m) < headerSize || m[0] != 'f' || m[1] != 'p':
		return nil, at, errors.New("it is no message of a queue: something else publishes here")
	case m[2] != formatVersion:
		return nil, at, fmt.Errorf("it has the format %d, and this program knows %d: a newer program published it", m[2], formatVersion)
	case binary.LittleEndian.Uint32(m[4:]) != checksum(m):
		return nil, at, errors.New("its checksum is wrong: it was damaged on its way")
	case m[3]&^flagS2 != 0:
		return nil, at, fmt.Errorf("it has the unknown flags %#x: a newer program published it", m[3])
	}
	body := m[headerSize:]
	if m[3]&flagS2 != 0 {
		if size, err := s2.DecodedLen(body); err == nil && size > maxRaw {
			return nil, at, fmt.Errorf("it would be %d bytes without compression, the limit is %d", size, maxRaw)
		}
		if body, err = s2.Decode(nil, body); err != nil {
			return nil, at, fmt.Errorf("decompress it: %w", err)
		}
	}
	micro, n := binary.Varint(body)
	if n <= 0 {
		return nil, at, errors.New("it ends before its time")
	}
	c, rest, err := state.ReadCommand(body[n:])
	if err != nil {
		return nil, at, err
	}
	if c.Op != state.Enqueue || len(c.Jobs) == 0 || len(rest) > 0 {
		return nil, at, fmt.Errorf("it has the command %d, %d jobs and %d bytes behind them", c.Op, len(c.Jobs), len(rest))
	}
	for i := range c.Jobs {
		if err := check(&c.Jobs[i]); err != nil {
			return nil, at, err
		}
	}
	return c.Jobs, time.UnixMicro(micro), nil
}

// check says what is wrong with a job, in whatever store.
func check(job *queue.Job) error {
	if job.Provider == "" || job.EventID == "" {
		return fmt.Errorf("a job has the provider %q and the event id %q: both are needed to know it again", job.Provider, job.EventID)
	}
	if err := job.Debounce.Check(job.Resource); err != nil {
		return fmt.Errorf("event %q of %s: %w", job.EventID, job.Provider, err)
	}
	return nil
}
