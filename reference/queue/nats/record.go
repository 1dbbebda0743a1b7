package nats

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"floodproof/reference/queue"
)

// errDamaged: a stored message is not what was stored.
var errDamaged = errors.New("stored message is damaged")

// What stands in the first byte of a job and of a state: their format.
// The first formats, which are still read, had no debouncing, no steps and no history.
const (
	jobFormat   = 2
	stateFormat = 2
)

// How a payload is stored.
const (
	encodingRaw = 0
	encodingS2  = 1
)

// encodeJob packs a job. Payloads are compressed one by one, where that makes them smaller.
func encodeJob(job *queue.Job) []byte {
	encoding, body := byte(encodingRaw), job.Payload
	if packed := s2.Encode(nil, job.Payload); len(packed) < len(job.Payload) {
		encoding, body = encodingS2, packed
	}
	texts := []string{job.Provider, job.EventID, job.DeliveryID, job.Type, job.Resource, job.Lane, job.DeadOnArrival}
	size := 56 + len(body)
	for _, text := range texts {
		size += binary.MaxVarintLen32 + len(text)
	}
	b := append(make([]byte, 0, size), jobFormat, encoding)
	b = binary.AppendVarint(b, job.Version)
	b = binary.AppendVarint(b, job.ReceivedAt.UnixMicro())
	b = binary.AppendVarint(b, int64(job.Debounce.Quiet))
	b = binary.AppendVarint(b, int64(job.Debounce.MaxWait))
	b = append(b, byte(job.Debounce.Edge))
	for _, text := range texts {
		b = appendText(b, text)
	}
	return append(b, body...)
}

func decodeJob(b []byte) (queue.Job, error) {
	r := reader{rest: b}
	format, encoding := r.byte(), r.byte()
	job := queue.Job{Version: r.varint(), ReceivedAt: time.UnixMicro(r.varint()).UTC()}
	if format > 1 {
		job.Debounce = queue.Debounce{Quiet: time.Duration(r.varint()), MaxWait: time.Duration(r.varint()), Edge: queue.Edge(r.byte())}
	}
	for _, text := range []*string{&job.Provider, &job.EventID, &job.DeliveryID, &job.Type, &job.Resource, &job.Lane, &job.DeadOnArrival} {
		*text = r.text()
	}
	if r.short {
		return queue.Job{}, fmt.Errorf("%w: the job ends early", errDamaged)
	}
	if format < 1 || format > jobFormat {
		return queue.Job{}, fmt.Errorf("job has format %d and this program knows %d: use the newer program", format, jobFormat)
	}
	job.Payload = r.rest
	if encoding == encodingS2 {
		var err error
		if job.Payload, err = s2.Decode(nil, r.rest); err != nil {
			return queue.Job{}, fmt.Errorf("%w: decompress: %w", errDamaged, err)
		}
	}
	return job, nil
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// reader takes values off the front; short says that one was missing.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.rest, r.short = nil, true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		n = -1
	}
	r.take(n)
	return v
}

func (r *reader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.take(-1)
		return ""
	}
	return string(r.take(int(n)))
}

// count is how many of something follow; each has a byte at least.
func (r *reader) count() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.take(-1)
		return 0
	}
	return int(n)
}
