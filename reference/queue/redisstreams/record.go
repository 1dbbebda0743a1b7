package redisstreams

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/s2"

	"floodproof/reference/queue"
)

// How a payload is stored.
const (
	encodingRaw = 0
	encodingS2  = 1
)

// The first byte of a record: of a job without debouncing, and of one with it.
const (
	recordPlain     = 1
	recordDebounced = 2
)

// errDamaged: what is stored of a job cannot be read.
var errDamaged = errors.New("the stored event cannot be read")

// ref names a job in keys: the length of the provider keeps it apart from the id, whatever bytes they have.
func ref(provider, eventID string) string {
	return strconv.Itoa(len(provider)) + ":" + provider + ":" + eventID
}

// splitRef is the reverse of ref.
func splitRef(ref string) (provider, eventID string, err error) {
	length, rest, ok := strings.Cut(ref, ":")
	n, err := strconv.Atoi(length)
	if !ok || err != nil || n < 0 || n >= len(rest) || rest[n] != ':' {
		return "", "", fmt.Errorf("%w: its name is %q", errDamaged, ref)
	}
	return rest[:n], rest[n+1:], nil
}

// encode packs a job: what never changes, in one value that no script looks into. Provider and event id are not in it, they name it.
//
// Payloads are compressed one by one with s2: what is stored is held in memory, and written to the append-only file.
func encode(job *queue.Job) []byte {
	texts := []string{job.Lane, job.DeliveryID, job.Type, job.Resource}
	size := 2 + 5*binary.MaxVarintLen64
	for _, t := range texts {
		size += binary.MaxVarintLen32 + len(t)
	}
	head := make([]byte, 0, size+s2.MaxEncodedLen(len(job.Payload)))
	head = append(head, recordPlain, encodingS2)
	head = binary.AppendVarint(head, job.Version)
	head = binary.AppendVarint(head, job.ReceivedAt.UnixMicro())
	for _, t := range texts {
		head = binary.AppendUvarint(head, uint64(len(t)))
		head = append(head, t...)
	}
	if d := job.Debounce; d != (queue.Debounce{}) {
		head[0] = recordDebounced
		for _, n := range []int64{int64(d.Quiet), int64(d.MaxWait), int64(d.Edge)} {
			head = binary.AppendVarint(head, n)
		}
	}
	compressed := s2.Encode(head[len(head):cap(head)], job.Payload)
	if len(compressed) < len(job.Payload) {
		return head[:len(head)+len(compressed)] // s2 wrote into the room behind the head
	}
	head[1] = encodingRaw
	return append(head, job.Payload...)
}

// decode unpacks a job.
func decode(ref, record string) (job queue.Job, err error) {
	job, encoding, rest, err := decodeHead(ref, record)
	if err != nil {
		return job, err
	}
	switch encoding {
	case encodingRaw:
		job.Payload = rest
	case encodingS2:
		if job.Payload, err = s2.Decode(nil, rest); err != nil {
			return job, fmt.Errorf("%w: decompress: %w", errDamaged, err)
		}
	default:
		return job, fmt.Errorf("%w: its payload has the unknown encoding %d", errDamaged, encoding)
	}
	return job, nil
}

// decodeHead unpacks a job but for its payload, which is what is left of the record, as it is stored.
func decodeHead(ref, record string) (job queue.Job, encoding byte, rest []byte, err error) {
	if job.Provider, job.EventID, err = splitRef(ref); err != nil {
		return job, 0, nil, err
	}
	r := reader{rest: []byte(record)}
	version := r.byte()
	encoding = r.byte()
	if r.failed || version != recordPlain && version != recordDebounced {
		return job, 0, nil, fmt.Errorf("%w: it has format %d, this program knows %d and %d", errDamaged, version, recordPlain, recordDebounced)
	}
	job.Version = r.varint()
	job.ReceivedAt = time.UnixMicro(r.varint()).UTC()
	for _, text := range []*string{&job.Lane, &job.DeliveryID, &job.Type, &job.Resource} {
		*text = r.text()
	}
	if version == recordDebounced {
		job.Debounce = queue.Debounce{Quiet: time.Duration(r.varint()), MaxWait: time.Duration(r.varint()), Edge: queue.Edge(r.varint())}
	}
	if r.failed {
		return job, 0, nil, fmt.Errorf("%w: it is too short", errDamaged)
	}
	return job, encoding, r.rest, nil
}

// reader takes a record apart. After a failure it gives zero values.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) byte() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if r.failed = r.failed || n <= 0; r.failed {
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text() string {
	length, n := binary.Uvarint(r.rest)
	if r.failed = r.failed || n <= 0 || length > uint64(len(r.rest)-n); r.failed {
		return ""
	}
	text := string(r.rest[n : n+int(length)])
	r.rest = r.rest[n+int(length):]
	return text
}
