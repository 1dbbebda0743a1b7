package ledger_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
)

// collect reads a ledger into the list of its records.
func collect(in io.Reader) (records []any, end *ledger.End, err error) {
	v := visitor(func(r any) { records = append(records, r) })
	_, end, err = ledger.Read(in, v)
	return records, end, err
}

func visitor(add func(any)) ledger.Visitor {
	return ledger.Visitor{
		Event:       func(r *ledger.Event) { add(*r) },
		Delivery:    func(r *ledger.Delivery) { add(*r) },
		Attempt:     func(r *ledger.Attempt) { add(*r) },
		Call:        func(r *ledger.Call) { add(*r) },
		Fault:       func(r *ledger.Fault) { add(*r) },
		SegmentMark: func(r *ledger.SegmentMark) { add(*r) },
		DeadLetter:  func(r *ledger.DeadLetter) { add(*r) },
		Sample:      func(r *ledger.Sample) { add(*r) },
		Note:        func(r *ledger.Note) { add(*r) },
	}
}

// everyKind is one record of each kind with every field set, and the forms that are encoded differently.
func everyKind() []any {
	us := time.Microsecond
	return []any{
		ledger.Event{Number: 7, ID: "evt_1", Provider: 2, Resource: 9, Version: 3, Flags: ledger.Poison | ledger.Latest, Lane: ledger.MaxLanes - 1},
		ledger.Delivery{Number: 1, Class: ledger.DuplicateNewID, Provider: 2, First: 7, Count: 100},
		ledger.Delivery{Number: 2, Class: ledger.Malformed, Provider: 1, First: ledger.None},
		ledger.Attempt{Delivery: 1, Try: 3, Segment: 4, Due: 5000 * us, Start: 5100 * us, Done: 9000 * us, Status: 503, Result: ledger.Refused, Then: ledger.Retry, Blocked: true},
		ledger.Attempt{Delivery: 1, Try: 1, Due: 4000 * us, Start: 4000 * us, Done: 4000 * us, Result: ledger.Unconnected, Then: ledger.Exhausted},
		ledger.Call{At: 6000 * us, Event: 7, Step: 1, Outcome: ledger.Took, Fault: ledger.None},
		ledger.Call{At: 6001 * us, Event: ledger.None, ID: "who/is:this\x00", Outcome: ledger.Throttled, Fault: 12},
		ledger.Fault{At: 7 * us, Number: 1, Step: 2, Side: ledger.Broker, Phase: ledger.Broken, Name: "queue.hold", Target: "sqlite", Note: "busy"},
		ledger.SegmentMark{At: 8 * us, Segment: 3, Begin: true},
		ledger.DeadLetter{Event: 7, Claimed: 1 << 63, Expected: 5, Reason: "422"},
		ledger.DeadLetter{Event: ledger.None, ID: "?", Reason: ""},
		ledger.Sample{At: 9 * us, Name: "depth", Value: -1.5},
		ledger.Note{At: 10 * us, Text: "clock jumped"},
	}
}

func put(t *testing.T, w *ledger.Writer, r any) {
	t.Helper()
	switch r := r.(type) {
	case ledger.Event:
		w.Event(r)
	case ledger.Delivery:
		w.Delivery(r)
	case ledger.Attempt:
		w.Attempt(r)
	case ledger.Call:
		w.Call(r)
	case ledger.Fault:
		w.Fault(r)
	case ledger.SegmentMark:
		w.SegmentMark(r)
	case ledger.DeadLetter:
		w.DeadLetter(r)
	case ledger.Sample:
		w.Sample(r)
	case ledger.Note:
		w.Note(r)
	default:
		t.Fatalf("no record kind %T", r)
	}
}

func write(t *testing.T, records []any) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ledger.Create(&out, ledger.Header{RunID: "r", Steps: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		put(t, w, r)
	}
	if err := w.Close(ledger.End{At: time.Second, Drain: ledger.Drained}); err != nil {
		t.Fatal(err)
	}
	if got, want := w.Bytes(), int64(out.Len()); got != want {
		t.Errorf("Bytes() = %d, want %d", got, want)
	}
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	want := everyKind()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 40_000 { // several blocks
		want = append(want, want[rng.IntN(13)])
	}
	got, end, err := collect(bytes.NewReader(write(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records differ (-want +got):\n%s", diff)
	}
	if end == nil || end.Drain != ledger.Drained || end.At != time.Second {
		t.Errorf("end = %+v, want drained after 1s", end)
	}
}

// TestCut cuts a ledger at every byte: each prefix gives a prefix of the records, never an end, never another error.
func TestCut(t *testing.T) {
	all := everyKind()
	file := write(t, all)
	for n := range len(file) {
		got, end, err := collect(bytes.NewReader(file[:n]))
		if end != nil || err == nil {
			t.Fatalf("cut at %d of %d: end %v, error %v; want no end and an error", n, len(file), end, err)
		}
		if len(got) > len(all) {
			t.Fatalf("cut at %d: %d records of %d", n, len(got), len(all))
		}
	}
	_, _, err := collect(bytes.NewReader(file[:len(file)-1]))
	if !errors.Is(err, ledger.ErrNoEnd) {
		t.Errorf("cut in the last block: error %v, want ErrNoEnd", err)
	}
}

// TestDamage flips every byte after the header: no flip may pass unnoticed.
func TestDamage(t *testing.T) {
	file := write(t, everyKind())
	start := bytes.Index(file, []byte("evt_1")) - 16
	for i := start; i < len(file); i++ {
		broken := bytes.Clone(file)
		broken[i] ^= 0x10
		if _, end, err := collect(bytes.NewReader(broken)); err == nil || end != nil {
			t.Fatalf("byte %d flipped: end %v, error %v; want an error", i, end, err)
		}
	}
}

func TestMoreBehindTheEnd(t *testing.T) {
	file := append(write(t, everyKind()), 'x')
	if _, end, err := collect(bytes.NewReader(file)); err == nil || end != nil {
		t.Errorf("end %v, error %v; want no end and an error", end, err)
	}
}

func TestForeignFiles(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "text": "hello, world", "newer": "FPLEDGER\x63", "only the magic": "FPLEDGER\x01"} {
		if h, end, err := ledger.Read(bytes.NewReader([]byte(text)), ledger.Visitor{}); err == nil || h != nil || end != nil {
			t.Errorf("%s: header %v, end %v, error %v; want an error alone", name, h, end, err)
		}
	}
}

type failingWriter struct{ after int }

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.after -= len(b); w.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestWriterKeepsTheFirstError(t *testing.T) {
	w, err := ledger.Create(&failingWriter{after: 2000}, ledger.Header{})
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		w.Note(ledger.Note{Text: "a line that fills the block"})
	}
	if err := w.Close(ledger.End{}); err == nil {
		t.Error("Close after a failed write returned nil, want the error")
	}
}

func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	w, err := ledger.Create(&out, ledger.Header{})
	if err != nil {
		f.Fatal(err)
	}
	w.Note(ledger.Note{Text: "seed"})
	if err := w.Close(ledger.End{}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte("FPLEDGER\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, file []byte) {
		_, end, err := collect(bytes.NewReader(file))
		if (end == nil) == (err == nil) {
			t.Errorf("end %v and error %v; want exactly one", end, err)
		}
	})
}

// BenchmarkRead reads a ledger of the four records that an ordinary event takes.
func BenchmarkRead(b *testing.B) {
	const events = 200_000
	var out bytes.Buffer
	w, err := ledger.Create(&out, ledger.Header{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range uint32(events) {
		at := time.Duration(i) * 433 * time.Microsecond
		w.Event(ledger.Event{Number: i, ID: "evt_1PgafmB7WZ01zgkW6dKueIc5", Resource: i / 3, Version: i % 3})
		w.Delivery(ledger.Delivery{Number: i, Class: ledger.Genuine, First: i, Count: 1})
		w.Attempt(ledger.Attempt{Delivery: i, Try: 1, Due: at, Start: at + 80*time.Microsecond, Done: at + 2*time.Millisecond, Status: 200, Result: ledger.OK, Then: ledger.Settled})
		w.Call(ledger.Call{At: at + 9*time.Millisecond, Event: i, Outcome: ledger.Took, Fault: ledger.None})
	}
	if err := w.Close(ledger.End{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	for b.Loop() {
		var n int
		v := ledger.Visitor{Event: func(*ledger.Event) { n++ }, Attempt: func(*ledger.Attempt) { n++ }, Call: func(*ledger.Call) { n++ }}
		if _, _, err := ledger.Read(bytes.NewReader(out.Bytes()), v); err != nil || n != 3*events {
			b.Fatalf("%d records, error %v", n, err)
		}
	}
	b.ReportMetric(float64(out.Len())/events, "B/event")
}
