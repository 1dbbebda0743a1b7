package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"

	"floodproof/reference/queue"
)

// A record is one job in a segment: the length of its body and a CRC-32C over length and body, little-endian, four bytes each, and the body. The first byte
// of the body are its flags, the rest is the packed job. A length of 0 is no record: that is where a segment ends.
const (
	recordHeader = 8
	// minRecord is the header and the flags.
	minRecord = recordHeader + 1
)

// The flags of a record.
const (
	// flagS2: the packed job is compressed.
	flagS2 = 1 << 0
	// flagMore: another record of the same Enqueue follows; without it they are nothing.
	flagMore = 1 << 7
)

// maxBody bounds Options.MaxPayload: the length of a record has four bytes.
const maxBody = 500_000_000

// errDamaged: the bytes of a job are not those that were stored. It is the job's end and not the queue's: see claim.
var errDamaged = errors.New("stored job is damaged or missing")

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// packer makes records. Its zero value is ready; it belongs to one goroutine at a time.
type packer struct{ packed, record []byte }

// append appends the job as it stands in a segment. It is compressed by itself: there is no shared dictionary, because a payload has to be
// readable for as long as it is kept, and a dictionary that is lost or replaced takes all of them with it.
//
// Note: what is known of a job is compressed together with its payload, which mostly says the same once more: an id that stands in both costs a few bytes.
//
// Note: zstd at its fastest level makes bodies a quarter smaller and takes four times as long in a busy receiver, where its
// tables are never in the processor's cache. There it was a quarter of the receiver's time.
func (p *packer) append(b []byte, job *queue.Job, at int64, more bool) []byte {
	p.packed = appendJob(p.packed[:0], job, at)
	size := minRecord + max(s2.MaxEncodedLen(len(p.packed)), len(p.packed))
	p.record = slices.Grow(p.record[:0], size)
	out := p.record[:size]
	var flags byte
	body := s2.Encode(out[minRecord:], p.packed)
	if size = len(body); size < len(p.packed) {
		flags = flagS2
	} else {
		size = copy(out[minRecord:], p.packed)
	}
	if more {
		flags |= flagMore
	}
	out = out[:minRecord+size]
	out[recordHeader] = flags
	seal(out)
	if cap(p.packed) > maxIdleCall {
		p.packed, p.record = nil, nil
	}
	return append(b, out...) // and so b, which waits for its turn at the disk, holds no more than that
}

// seal writes the header of a record.
func seal(record []byte) {
	binary.LittleEndian.PutUint32(record, uint32(len(record)-recordHeader))
	binary.LittleEndian.PutUint32(record[4:], checksum(record))
}

func checksum(record []byte) uint32 {
	return crc32.Update(crc32.Checksum(record[:4], castagnoli()), castagnoli(), record[recordHeader:])
}

// cut returns the record that b begins with, or nil if there is no whole and undamaged one.
func cut(b []byte) []byte {
	size := recordSize(b)
	if size == 0 || size > len(b) || binary.LittleEndian.Uint32(b[4:]) != checksum(b[:size]) {
		return nil
	}
	return b[:size]
}

// recordSize is what the header says, 0 for none.
func recordSize(b []byte) int {
	if len(b) < minRecord {
		return 0
	}
	body := binary.LittleEndian.Uint32(b)
	if body == 0 || body > 2*maxBody {
		return 0
	}
	return recordHeader + int(body)
}

// hasMore reports whether the record is not the last of its Enqueue.
func hasMore(record []byte) bool { return record[recordHeader]&flagMore != 0 }

func appendJob(b []byte, job *queue.Job, at int64) []byte {
	b = binary.AppendVarint(b, at)
	b = binary.AppendVarint(b, job.ReceivedAt.UnixMicro())
	b = binary.AppendVarint(b, job.Version)
	b = binary.AppendUvarint(b, uint64(job.Debounce.Quiet))
	if job.Debounce.Quiet > 0 {
		b = binary.AppendUvarint(b, uint64(job.Debounce.MaxWait))
		b = append(b, byte(job.Debounce.Edge))
	}
	for _, text := range []string{job.Provider, job.EventID, job.DeliveryID, job.Type, job.Resource, job.Lane, job.DeadOnArrival} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return append(b, job.Payload...)
}

// unpackRecord is the job of a whole record, and when it came. The payload is a slice of the record or of scratch, if that is large enough for what is in it.
func unpackRecord(record, scratch []byte) (job queue.Job, at int64, err error) {
	packed := record[minRecord:]
	switch flags := record[recordHeader] &^ flagMore; flags {
	case 0:
	case flagS2:
		if packed, err = s2.Decode(scratch, packed); err != nil {
			return job, 0, fmt.Errorf("%w: decompress: %w", errDamaged, err)
		}
	default:
		return job, 0, fmt.Errorf("record has the unknown flags %#x: it was stored by a newer version", flags)
	}
	r := fields{rest: packed}
	at = r.integer()
	job.ReceivedAt = time.UnixMicro(r.integer()).UTC()
	job.Version = r.integer()
	if quiet := r.number(); quiet > 0 {
		job.Debounce = queue.Debounce{Quiet: time.Duration(quiet), MaxWait: time.Duration(r.number()), Edge: queue.Edge(r.number())}
	}
	for _, text := range []*string{&job.Provider, &job.EventID, &job.DeliveryID, &job.Type, &job.Resource, &job.Lane, &job.DeadOnArrival} {
		*text = r.text()
	}
	if r.short {
		return job, 0, fmt.Errorf("%w: its fields end too early", errDamaged)
	}
	job.Payload = r.rest
	return job, at, nil
}

// fields reads what appendJob wrote. Once something is missing, short is set and everything is empty.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) integer() int64 {
	v, n := binary.Varint(f.rest)
	return int64(f.advance(n, uint64(v)))
}

func (f *fields) number() uint64 {
	v, n := binary.Uvarint(f.rest)
	return f.advance(n, v)
}

func (f *fields) text() string {
	size := f.number()
	if size > uint64(len(f.rest)) {
		f.short = true
		return ""
	}
	text := string(f.rest[:size])
	f.rest = f.rest[size:]
	return text
}

// advance goes past a number of n bytes and returns it.
func (f *fields) advance(n int, v uint64) uint64 {
	if n <= 0 || f.short {
		f.short = true
		return 0
	}
	f.rest = f.rest[n:]
	return v
}
