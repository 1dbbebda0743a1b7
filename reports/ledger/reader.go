package ledger

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// ErrNoEnd: the ledger has no end record; the run was killed or is still going on. Who judges says unknown.
var ErrNoEnd = errors.New("ledger has no end record")

// Visitor takes the records one by one, in the order of the file. A nil function skips its kind. What a pointer points to is valid only
// during the call.
type Visitor struct {
	Event       func(*Event)
	Delivery    func(*Delivery)
	Attempt     func(*Attempt)
	Call        func(*Call)
	Fault       func(*Fault)
	SegmentMark func(*SegmentMark)
	DeadLetter  func(*DeadLetter)
	Sample      func(*Sample)
	Note        func(*Note)
}

// Read reads a whole ledger. On a file that was cut it returns the header, no end and an error that is ErrNoEnd, after visiting all
// whole blocks; on a damaged one an error that names the byte. The header is nil only when not even that could be read.
func Read(in io.Reader, v Visitor) (*Header, *End, error) {
	r := &reader{in: bufio.NewReaderSize(in, 256<<10), v: v}
	h, err := r.header()
	if err != nil {
		return nil, nil, err
	}
	for r.end == nil {
		payload, err := r.block()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return h, nil, ErrNoEnd
		}
		if err != nil {
			return h, nil, damage(r.offset, err)
		}
		if err := r.records(payload); err != nil {
			return h, nil, damage(r.offset, err)
		}
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		return h, nil, damage(r.offset, errors.New("there is more behind the end record"))
	}
	return h, r.end, nil
}

// reader holds the current record of each kind, so that a million records cost no allocation.
type reader struct {
	in     *bufio.Reader
	v      Visitor
	buf    []byte
	offset int64
	end    *End

	event    Event
	delivery Delivery
	attempt  Attempt
	call     Call
	fault    Fault
	segment  SegmentMark
	dead     DeadLetter
	sample   Sample
	note     Note
}

func (r *reader) header() (*Header, error) {
	var start [len(magic) + 1]byte
	if _, err := io.ReadFull(r.in, start[:]); err != nil || string(start[:len(magic)]) != magic {
		return nil, errors.New("read ledger: this is not a ledger; give the file named ledger in a run's folder")
	}
	if v := start[len(magic)]; v != Version {
		return nil, fmt.Errorf("read ledger: format version %d, this program reads %d; use the floodproof that wrote it", v, Version)
	}
	r.offset = int64(len(start))
	payload, err := r.block()
	if err != nil {
		return nil, fmt.Errorf("read ledger header: %w", err)
	}
	var h Header
	if err := json.Unmarshal(payload, &h); err != nil {
		return nil, fmt.Errorf("read ledger header: %w", err)
	}
	return &h, nil
}

// block returns the next payload; io.EOF and io.ErrUnexpectedEOF mean that the file ends here.
func (r *reader) block() ([]byte, error) {
	var frame [8]byte
	if _, err := io.ReadFull(r.in, frame[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(frame[:4])
	if n > maxBlock {
		return nil, fmt.Errorf("block of %d bytes", n)
	}
	if cap(r.buf) < int(n) {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	if crc32.Checksum(r.buf, castagnoli) != binary.LittleEndian.Uint32(frame[4:]) {
		return nil, errors.New("checksum does not fit")
	}
	r.offset += int64(len(frame)) + int64(n)
	return r.buf, nil
}

func (r *reader) records(payload []byte) error {
	d := &decoder{buf: payload}
	for len(d.buf) > 0 {
		if r.end != nil {
			return errors.New("there is more behind the end record")
		}
		r.record(kind(d.byte()), d)
		if d.err != nil {
			return d.err
		}
	}
	return nil
}

func (r *reader) record(k kind, d *decoder) {
	switch k {
	case kindEvent:
		r.readEvent(d)
	case kindDelivery:
		r.readDelivery(d)
	case kindAttempt:
		r.readAttempt(d)
	case kindCall:
		r.readCall(d)
	case kindFault:
		r.readFault(d)
	case kindSegment:
		r.segment = SegmentMark{At: d.at(), Segment: d.byte(), Begin: d.byte() != 0}
		visit(d, r.v.SegmentMark, &r.segment)
	case kindDeadLetter:
		r.readDeadLetter(d)
	case kindSample:
		r.sample = Sample{At: d.at(), Name: d.string(), Value: d.float()}
		visit(d, r.v.Sample, &r.sample)
	case kindNote:
		r.note = Note{At: d.at(), Text: d.string()}
		visit(d, r.v.Note, &r.note)
	case kindEnd:
		r.readEnd(d)
	default:
		d.fail()
	}
}

// visit hands a record over if it was read whole and somebody wants it.
func visit[T any](d *decoder, f func(*T), rec *T) {
	if d.err == nil && f != nil {
		f(rec)
	}
}

func (r *reader) readEvent(d *decoder) {
	e := &r.event
	e.Number = uint32(d.uintMax(math.MaxUint32 - 1))
	e.ID = d.string()
	e.Provider = d.byte()
	e.Resource = uint32(d.uintMax(math.MaxUint32))
	e.Version = uint32(d.uintMax(math.MaxUint32))
	b := d.byte()
	e.Flags, e.Lane = EventFlags(b&(1<<flagBits-1)), b>>flagBits
	visit(d, r.v.Event, e)
}

func (r *reader) readDelivery(d *decoder) {
	v := &r.delivery
	v.Number = uint32(d.uintMax(math.MaxUint32 - 1))
	v.Class = Class(d.byte())
	v.Provider = d.byte()
	v.First = d.number()
	v.Count = uint16(d.uintMax(math.MaxUint16))
	visit(d, r.v.Delivery, v)
}

func (r *reader) readAttempt(d *decoder) {
	a := &r.attempt
	a.Delivery = uint32(d.uintMax(math.MaxUint32 - 1))
	a.Try = uint16(d.uintMax(math.MaxUint16))
	a.Segment = d.byte()
	a.Due = d.at()
	a.Start = a.Due + d.duration().duration()
	a.Done = a.Start + d.duration().duration()
	a.Status = uint16(d.uintMax(math.MaxUint16))
	b := d.byte()
	a.Result, a.Blocked, a.Then = Result(b>>4), b&8 != 0, Then(b&7)
	visit(d, r.v.Attempt, a)
}

func (r *reader) readCall(d *decoder) {
	c := &r.call
	c.At = d.at()
	c.Event, c.ID = d.number(), ""
	if c.Event == None {
		c.ID = d.string()
	}
	c.Step = d.byte()
	c.Outcome = Outcome(d.byte())
	c.Fault = d.number()
	visit(d, r.v.Call, c)
}

func (r *reader) readFault(d *decoder) {
	f := &r.fault
	f.At = d.at()
	f.Number = uint32(d.uintMax(math.MaxUint32 - 1))
	f.Step = d.byte()
	f.Side = Side(d.byte())
	f.Phase = Phase(d.byte())
	f.Name, f.Target, f.Note = d.string(), d.string(), d.string()
	visit(d, r.v.Fault, f)
}

func (r *reader) readDeadLetter(d *decoder) {
	l := &r.dead
	l.Event, l.ID = d.number(), ""
	if l.Event == None {
		l.ID = d.string()
	}
	l.Claimed, l.Expected = d.hash(), d.hash()
	l.Reason = d.string()
	visit(d, r.v.DeadLetter, l)
}

func (r *reader) readEnd(d *decoder) {
	var end End
	if err := json.Unmarshal([]byte(d.string()), &end); err != nil || d.err != nil {
		d.fail()
		return
	}
	r.end = &end
}
