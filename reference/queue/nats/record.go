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
const (
	jobFormat   = 1
	stateFormat = 1
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
	size := 32 + len(body)
	for _, text := range texts {
		size += binary.MaxVarintLen32 + len(text)
	}
	b := append(make([]byte, 0, size), jobFormat, encoding)
	b = binary.AppendVarint(b, job.Version)
	b = binary.AppendVarint(b, job.ReceivedAt.UnixMicro())
	for _, text := range texts {
		b = appendText(b, text)
	}
	return append(b, body...)
}

func decodeJob(b []byte) (queue.Job, error) {
	r := reader{rest: b}
	format, encoding := r.byte(), r.byte()
	job := queue.Job{Version: r.varint(), ReceivedAt: time.UnixMicro(r.varint()).UTC()}
	for _, text := range []*string{&job.Provider, &job.EventID, &job.DeliveryID, &job.Type, &job.Resource, &job.Lane, &job.DeadOnArrival} {
		*text = r.text()
	}
	if r.short {
		return queue.Job{}, fmt.Errorf("%w: the job ends early", errDamaged)
	}
	if format != jobFormat {
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

type kind byte

// The states of a job that was leased at least once. A job without a state waits since it was stored.
const (
	waiting kind = iota + 1
	leased
	done
	dead
)

// state is the last thing that happened to a job. Each is a message on the job's subject, stored under the condition that the one before it is still the
// last, so that of two who want to change it one fails.
type state struct {
	kind kind
	// attempt counts the leases.
	attempt int
	// at is when a waiting job is due, when a lease ends, and when a job was settled: the server's clock in microseconds.
	at int64
	// token is that of the lease, 0 for the sequence of this very message.
	token uint64
	// carrier is the sequence of the message whose delivery, unacknowledged, brings the job again; 0 is the message after this one.
	carrier uint64
	reason  string

	// seq is the sequence of the message. It is not stored in it.
	seq uint64
}

func (s *state) encode() []byte {
	b := append(make([]byte, 0, 40+len(s.reason)), stateFormat, byte(s.kind))
	b = binary.AppendUvarint(b, uint64(s.attempt))
	b = binary.AppendVarint(b, s.at)
	b = binary.AppendUvarint(b, s.token)
	b = binary.AppendUvarint(b, s.carrier)
	return appendText(b, s.reason)
}

// decodeState reads the state in the message with that sequence, and fills in what is relative to it.
func decodeState(b []byte, seq uint64) (state, error) {
	r := reader{rest: b}
	format := r.byte()
	s := state{kind: kind(r.byte()), attempt: int(r.uvarint()), at: r.varint(), token: r.uvarint(), carrier: r.uvarint(), reason: r.text(), seq: seq}
	switch {
	case r.short:
		return state{}, fmt.Errorf("%w: the state ends early", errDamaged)
	case format != stateFormat:
		return state{}, fmt.Errorf("state has format %d and this program knows %d: use the newer program", format, stateFormat)
	}
	if s.token == 0 {
		s.token = seq
	}
	if s.carrier == 0 {
		s.carrier = seq + 1
	}
	return s, nil
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
