package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

// magic opens every ledger; the format version follows it in one byte.
const magic = "FPLEDGER"

const (
	// blockSize is the payload at which a block is written out.
	blockSize = 64 << 10
	// maxBlock bounds what a reader allocates for one block, against damaged lengths.
	maxBlock = 8 << 20
	// maxString bounds one string in a record; longer ones are cut when written.
	maxString = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kind is the first byte of a record.
type kind byte

const (
	kindEvent kind = iota + 1
	kindDelivery
	kindAttempt
	kindCall
	kindFault
	kindSegment
	kindDeadLetter
	kindSample
	kindNote
	kindEnd
)

// encoder appends fields to a block. last is the time of the record before, so that times are small differences.
type encoder struct {
	buf  []byte
	last int64
}

func (e *encoder) byte(b byte)       { e.buf = append(e.buf, b) }
func (e *encoder) uint(v uint64)     { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *encoder) float(v float64)   { e.uint(math.Float64bits(v)) }
func (e *encoder) hash(v uint64)     { e.buf = binary.LittleEndian.AppendUint64(e.buf, v) }
func (e *encoder) duration(d micros) { e.buf = binary.AppendVarint(e.buf, int64(d)) }

func (e *encoder) string(s string) {
	if len(s) > maxString {
		s = s[:maxString]
	}
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// number writes an index that may be None, so that None takes one byte.
func (e *encoder) number(n uint32) { e.uint(uint64(n + 1)) }

// at writes an instant as the difference to the record before.
func (e *encoder) at(d time.Duration) {
	us := int64(toMicros(d))
	e.duration(micros(us - e.last))
	e.last = us
}

// micros are whole microseconds, the resolution of the file.
type micros int64

func toMicros(d time.Duration) micros { return micros(d.Round(time.Microsecond) / time.Microsecond) }

func (m micros) duration() time.Duration { return time.Duration(m) * time.Microsecond }

// errDamaged is what a decoder meets in a block whose checksum is right and whose content is not.
var errDamaged = errors.New("record does not fit its kind")

// decoder takes fields from a block; the first error stays.
type decoder struct {
	buf  []byte
	last int64
	err  error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errDamaged
	}
	d.buf = nil
}

func (d *decoder) byte() byte {
	if len(d.buf) == 0 {
		d.fail()
		return 0
	}
	b := d.buf[0]
	d.buf = d.buf[1:]
	return b
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.buf)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.buf = d.buf[n:]
	return v
}

// uintMax is uint for a field that has an upper bound.
func (d *decoder) uintMax(limit uint64) uint64 {
	v := d.uint()
	if v > limit {
		d.fail()
		return 0
	}
	return v
}

func (d *decoder) float() float64 { return math.Float64frombits(d.uint()) }

func (d *decoder) hash() uint64 {
	if len(d.buf) < 8 {
		d.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(d.buf)
	d.buf = d.buf[8:]
	return v
}

func (d *decoder) duration() micros {
	v, n := binary.Varint(d.buf)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.buf = d.buf[n:]
	return micros(v)
}

func (d *decoder) string() string {
	n := d.uintMax(maxString)
	if uint64(len(d.buf)) < n {
		d.fail()
		return ""
	}
	s := string(d.buf[:n])
	d.buf = d.buf[n:]
	return s
}

func (d *decoder) number() uint32 { return uint32(d.uintMax(math.MaxUint32)) - 1 }

func (d *decoder) at() time.Duration {
	d.last += int64(d.duration())
	return micros(d.last).duration()
}

// damage says where a file stopped making sense.
func damage(offset int64, err error) error {
	return fmt.Errorf("read ledger: damaged at byte %d: %w; what came before was read", offset, err)
}
