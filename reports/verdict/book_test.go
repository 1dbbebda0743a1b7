package verdict_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// Providers and segments of every book.
const (
	stripe = iota // retries
	github        // never retries
)

const (
	gatedSegment = iota
	nightSegment
)

// book is a ledger under construction: records in order, a header and an end that a test may change before judging.
type book struct {
	header     ledger.Header
	end        *ledger.End
	records    []any
	ids        []string
	deliveries uint32
	tries      map[uint32]uint16
}

// newBook is an empty, drained run of two providers and two segments, the first of them gated.
func newBook() *book {
	return &book{
		header: ledger.Header{
			Floodproof: "test", RunID: "r1", Scenario: "unit", Backend: "memory", Seed: 1,
			Providers: []ledger.Provider{{Name: "stripe", Timeout: 10 * s}, {Name: "github", OneShot: true, Timeout: 10 * s}},
			Steps:     []string{""},
			Segments:  []ledger.Segment{{Name: "busiest-hour", Scale: 20, Gated: true}, {Name: "night", Scale: 600}},
			Expect:    ledger.Expect{Steps: 1},
		},
		end:   &ledger.End{At: 100 * s, LoadEnd: 60 * s, DrainFrom: 60 * s, Drain: ledger.Drained, DeadLettersListed: true},
		tries: map[uint32]uint16{},
	}
}

func (b *book) put(r any) { b.records = append(b.records, r) }

// event introduces an event of Stripe.
func (b *book) event(id string, flags ledger.EventFlags) uint32 {
	return b.eventOf(ledger.Event{ID: id, Flags: flags, Resource: uint32(len(b.ids)), Version: 1})
}

func (b *book) eventOf(e ledger.Event) uint32 {
	e.Number = uint32(len(b.ids))
	b.ids = append(b.ids, e.ID)
	b.put(e)
	return e.Number
}

// deliver introduces a delivery of count events.
func (b *book) deliver(class ledger.Class, provider uint8, first uint32, count uint16) uint32 {
	n := b.deliveries
	b.deliveries++
	b.put(ledger.Delivery{Number: n, Class: class, Provider: provider, First: first, Count: count})
	return n
}

// try records an attempt that was due at due, began then and took as long as it says.
func (b *book) try(delivery uint32, due, took time.Duration, result ledger.Result, then ledger.Then) {
	b.tries[delivery]++
	b.put(ledger.Attempt{Delivery: delivery, Try: b.tries[delivery], Due: due, Start: due, Done: due + took, Result: result, Then: then})
}

// ack delivers an event and gets success after 5 ms.
func (b *book) ack(event uint32, due time.Duration) {
	b.try(b.deliver(ledger.Genuine, stripe, event, 1), due, 5*ms, ledger.OK, ledger.Settled)
}

func (b *book) effect(event uint32, at time.Duration) { b.step(event, at, 0) }

func (b *book) step(event uint32, at time.Duration, step uint8) {
	b.put(ledger.Call{At: at, Event: event, Step: step, Outcome: ledger.Took, Fault: ledger.None})
}

// good adds events that are acked after 5 ms and applied after 20 ms, one every 10 ms.
func (b *book) good(count int) {
	for i := range count {
		at := time.Duration(i) * 10 * ms
		e := b.event(fmt.Sprintf("good_%d", i), 0)
		b.ack(e, at)
		b.effect(e, at+20*ms)
	}
}

// fault adds one healed injection.
func (b *book) fault(number uint32, side ledger.Side, from, until time.Duration) {
	f := ledger.Fault{At: from, Number: number, Step: uint8(number), Side: side, Phase: ledger.Begin, Name: "test.fault", Target: "it"}
	b.put(f)
	f.At, f.Phase = until, ledger.Heal
	b.put(f)
}

// bytes is the ledger as a file.
func (b *book) bytes(t testing.TB) []byte {
	t.Helper()
	return write(t, b.header, b.records, b.end)
}

// write makes a ledger file; without an end it is one that was cut.
func write(t testing.TB, h ledger.Header, records []any, end *ledger.End) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := ledger.Create(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		put(t, w, r)
	}
	if end == nil {
		w.Flush()
		return out.Bytes()
	}
	if err := w.Close(*end); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func put(t testing.TB, w *ledger.Writer, r any) {
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

// judge judges a book and requires what holds for every verdict.
func judge(t testing.TB, b *book) *verdict.Verdict {
	t.Helper()
	data := b.bytes(t)
	v, err := verdict.Judge(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	requireSound(t, v)
	return v
}

// requireSound checks what holds for every verdict whatever the ledger: balanced sums, and an outcome that is that of its findings.
func requireSound(t testing.TB, v *verdict.Verdict) {
	t.Helper()
	c := v.Counts
	if got := c.Acked + c.CutOff + c.Unanswered + c.Refused + c.Undelivered; got != c.Events {
		t.Errorf("five classes sum to %d, want events = %d", got, c.Events)
	}
	if got := c.Applied + c.Superseded + c.DeadLettered + c.Lost + c.Doubled + c.Pending; got != c.Acked {
		t.Errorf("six classes sum to %d, want acked = %d", got, c.Acked)
	}
	if got := c.Absent + c.Recovered + c.DoubledUnacked; got != c.Events-c.Acked {
		t.Errorf("three classes sum to %d, want not acked = %d", got, c.Events-c.Acked)
	}
	want := verdict.Pass
	for _, f := range v.Findings {
		want = verdict.Merge(want, f.Outcome)
		if f.Observed == "" || f.Examples == nil || len(f.Examples) > 10 || f.Outcome != verdict.Unknown && (f.Limit == "" || f.Unit == "" || f.Value == nil || f.LimitValue == nil) {
			t.Errorf("finding %s is not whole: %+v", f.Invariant, f)
		}
		if f.Outcome != verdict.Pass && f.Hint == "" {
			t.Errorf("finding %s is %s and has no hint", f.Invariant, f.Outcome)
		}
	}
	if v.Interrupted {
		want = verdict.Merge(want, verdict.Unknown)
	}
	if v.Outcome != want {
		t.Errorf("outcome %s, its findings say %s", v.Outcome, want)
	}
}

// finding is the finding of one invariant; it must be there once.
func finding(t testing.TB, v *verdict.Verdict, name string) verdict.Finding {
	t.Helper()
	var found []verdict.Finding
	for _, f := range v.Findings {
		if f.Invariant == name {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d findings called %s, want 1", len(found), name)
	}
	return found[0]
}
