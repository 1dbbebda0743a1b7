package ledger

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"
)

// Writer appends records to a ledger. Its methods may be called from any goroutine; they do not report errors: the first one stays and comes back from
// Close, which makes the run's verdict unknown.
type Writer struct {
	mu    sync.Mutex
	out   io.Writer
	enc   encoder
	bytes int64
	err   error
	done  bool
}

// Create writes the header and returns a writer for the records. The caller closes out after Close.
func Create(out io.Writer, h Header) (*Writer, error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write ledger header: %w", err)
	}
	if len(text) > maxBlock {
		return nil, fmt.Errorf("write ledger header: %d bytes are over the limit of %d; is the scenario that long?", len(text), maxBlock)
	}
	w := &Writer{out: out, enc: encoder{buf: make([]byte, 0, blockSize+4096)}}
	w.write(append([]byte(magic), Version))
	w.block(text)
	if w.err != nil {
		return nil, fmt.Errorf("write ledger header: %w", w.err)
	}
	return w, nil
}

// Event introduces an event.
func (w *Writer) Event(r Event) {
	w.record(kindEvent, func(e *encoder) {
		e.uint(uint64(r.Number))
		e.string(r.ID)
		e.byte(r.Provider)
		e.uint(uint64(r.Resource))
		e.uint(uint64(r.Version))
		e.byte(byte(r.Flags)&(1<<flagBits-1) | r.Lane<<flagBits)
	})
}

// Delivery introduces a delivery.
func (w *Writer) Delivery(r Delivery) {
	w.record(kindDelivery, func(e *encoder) {
		e.uint(uint64(r.Number))
		e.byte(byte(r.Class))
		e.byte(r.Provider)
		e.number(r.First)
		e.uint(uint64(r.Count))
	})
}

// Attempt records an attempt that has ended.
func (w *Writer) Attempt(r Attempt) {
	w.record(kindAttempt, func(e *encoder) {
		e.uint(uint64(r.Delivery))
		e.uint(uint64(r.Try))
		e.byte(r.Segment)
		e.at(r.Due)
		e.duration(toMicros(r.Start) - toMicros(r.Due))
		e.duration(toMicros(r.Done) - toMicros(r.Start))
		e.uint(uint64(r.Status))
		blocked := byte(0)
		if r.Blocked {
			blocked = 1
		}
		e.byte(byte(r.Result)<<4 | blocked<<3 | byte(r.Then))
	})
}

// Call records a call that reached the sink.
func (w *Writer) Call(r Call) {
	w.record(kindCall, func(e *encoder) {
		e.at(r.At)
		e.number(r.Event)
		if r.Event == None {
			e.string(r.ID)
		}
		e.byte(r.Step)
		e.byte(byte(r.Outcome))
		e.number(r.Fault)
	})
}

// Fault records the begin or the end of a fault.
func (w *Writer) Fault(r Fault) {
	w.record(kindFault, func(e *encoder) {
		e.at(r.At)
		e.uint(uint64(r.Number))
		e.byte(r.Step)
		e.byte(byte(r.Side))
		e.byte(byte(r.Phase))
		e.string(r.Name)
		e.string(r.Target)
		e.string(r.Note)
	})
}

// SegmentMark records the begin or the end of a segment.
func (w *Writer) SegmentMark(r SegmentMark) {
	w.record(kindSegment, func(e *encoder) {
		e.at(r.At)
		e.byte(r.Segment)
		begin := byte(0)
		if r.Begin {
			begin = 1
		}
		e.byte(begin)
	})
}

// DeadLetter records an entry of the target's dead-letter list.
func (w *Writer) DeadLetter(r DeadLetter) {
	w.record(kindDeadLetter, func(e *encoder) {
		e.number(r.Event)
		if r.Event == None {
			e.string(r.ID)
		}
		e.hash(r.Claimed)
		e.hash(r.Expected)
		e.string(r.Reason)
	})
}

// Sample records a reading. A value that is not a number is left out.
func (w *Writer) Sample(r Sample) {
	if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) {
		return
	}
	w.record(kindSample, func(e *encoder) {
		e.at(r.At)
		e.string(r.Name)
		e.float(r.Value)
	})
}

// Note records a remark.
func (w *Writer) Note(r Note) {
	w.record(kindNote, func(e *encoder) {
		e.at(r.At)
		e.string(r.Text)
	})
}

// Flush writes out what is buffered, so that a killed runner leaves a ledger up to here.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
}

// Bytes is the size of the file so far.
func (w *Writer) Bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes + int64(len(w.enc.buf))
}

// Close writes the end record and returns the first error of the whole run. Records that come later are dropped.
func (w *Writer) Close(r End) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write ledger end: %w", err)
	}
	w.record(kindEnd, func(e *encoder) { e.string(string(text)) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	w.done = true
	if w.err != nil {
		return fmt.Errorf("write ledger: %w", w.err)
	}
	return nil
}

// record appends one record and writes a full block out.
func (w *Writer) record(k kind, fields func(*encoder)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done || w.err != nil {
		return
	}
	w.enc.byte(byte(k))
	fields(&w.enc)
	if len(w.enc.buf) >= blockSize {
		w.flush()
	}
}

// flush writes the buffered records as one block. Times start afresh in each block, so that a block can be read alone.
func (w *Writer) flush() {
	if len(w.enc.buf) == 0 || w.done {
		return
	}
	w.block(w.enc.buf)
	w.enc = encoder{buf: w.enc.buf[:0]}
}

func (w *Writer) block(payload []byte) {
	var frame [8]byte
	binary.LittleEndian.PutUint32(frame[:4], uint32(len(payload)))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(payload, castagnoli))
	w.write(frame[:])
	w.write(payload)
}

func (w *Writer) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.bytes += int64(n)
	w.err = err
}
