package reports

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"floodproof/reports/ledger"
)

// JSONL writes every record of the run's ledger as one JSON object a line, in the order of the file, with its kind under "kind": first "header", then the records,
// then "end" if there is one. Times are nanoseconds since the start of the run.
func JSONL(w io.Writer, r *Report) error {
	if r.Path == "" {
		return errors.New("dump ledger: this report was not read from a file")
	}
	f, err := os.Open(r.Path)
	if err != nil {
		return fmt.Errorf("dump ledger: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return dump(w, f, r.Header)
}

// dump writes the header before it reads, since a reader hands it over last.
func dump(w io.Writer, in io.Reader, h *ledger.Header) error {
	d := &dumper{w: bufio.NewWriterSize(w, 64<<10)}
	d.put("header", h)
	_, end, err := ledger.Read(in, ledger.Visitor{
		Event:       func(x *ledger.Event) { d.put("event", x) },
		Delivery:    func(x *ledger.Delivery) { d.put("delivery", x) },
		Attempt:     func(x *ledger.Attempt) { d.put("attempt", x) },
		Call:        func(x *ledger.Call) { d.put("call", x) },
		Fault:       func(x *ledger.Fault) { d.put("fault", x) },
		SegmentMark: func(x *ledger.SegmentMark) { d.put("segment", x) },
		DeadLetter:  func(x *ledger.DeadLetter) { d.put("dead_letter", x) },
		Sample:      func(x *ledger.Sample) { d.put("sample", x) },
		Note:        func(x *ledger.Note) { d.put("note", x) },
	})
	if errors.Is(err, ledger.ErrNoEnd) {
		err = nil
	}
	if end != nil {
		d.put("end", end)
	}
	// What could be read is written, also when the file is damaged further on.
	if err := errors.Join(err, d.err, d.w.Flush()); err != nil {
		return fmt.Errorf("dump ledger: %w", err)
	}
	return nil
}

type dumper struct {
	w   *bufio.Writer
	err error
}

// put writes {"kind":...,  and the record's own fields.
func (d *dumper) put(kind string, record any) {
	if d.err != nil {
		return
	}
	b, err := json.Marshal(record)
	if err != nil {
		d.err = err
		return
	}
	_, d.err = fmt.Fprintf(d.w, "{\"kind\":%q,%s\n", kind, b[1:])
}
