package reports

import (
	"bytes"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

func sumOf(v []int64) (n int64) {
	for _, x := range v {
		n += x
	}
	return n
}

// TestSeriesAgreesWithTheVerdict compares two readings of one ledger that share no code.
func TestSeriesAgreesWithTheVerdict(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		c, s := r.Verdict.Counts, r.Series
		if got, want := sumOf(s.Offered), c.Attempts; got != want {
			t.Errorf("offered adds up to %d, want %d attempts", got, want)
		}
		if got, want := sumOf(s.Acked), c.Acked; got != want {
			t.Errorf("acked adds up to %d, want %d", got, want)
		}
		if got, want := sumOf(s.Applied), c.Applied+c.Doubled; got != want {
			t.Errorf("applied adds up to %d, want %d", got, want)
		}
		if s.Len() > 0 {
			if got, want := s.Backlog[s.Len()-1], c.Lost+c.Pending; got != want {
				t.Errorf("the backlog ends at %d, want %d", got, want)
			}
		}
		if got, want := r.Ack.TotalCount(), r.Verdict.LatencyMS.Ack.Count; got != want {
			t.Errorf("%d ack samples, want %d", got, want)
		}
		if got, want := r.Effect.TotalCount(), r.Verdict.LatencyMS.Effect.Count; got != want {
			t.Errorf("%d effect samples, want %d", got, want)
		}
		if p := r.Verdict.LatencyMS.Ack.P99; p != nil {
			if got := float64(r.Ack.ValueAtPercentile(99)) / 1000; got < *p*.98 || got > *p*1.02 {
				t.Errorf("ack p99 = %.3f ms, want %.3f", got, *p)
			}
		}
	})
}

const ms = time.Millisecond

// small is a ledger of a few events, written record by record.
type small struct {
	h     ledger.Header
	write func(w *ledger.Writer)
}

func (s small) ledger(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	s.h.Segments = []ledger.Segment{{Name: "day", Until: 24 * time.Hour, Scale: 1, Gated: true}}
	s.h.Providers = []ledger.Provider{{Name: "stripe", Timeout: time.Second}}
	w, err := ledger.Create(&b, s.h)
	if err != nil {
		t.Fatal(err)
	}
	s.write(w)
	if err := w.Close(ledger.End{Drain: ledger.Drained, DeadLettersListed: true}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func event(w *ledger.Writer, e ledger.Event, class ledger.Class) {
	e.ID = fmt.Sprint("e", e.Number)
	w.Event(e)
	w.Delivery(ledger.Delivery{Number: e.Number, Class: class, First: e.Number, Count: 1})
}

func try(n uint32, due, done time.Duration, r ledger.Result) ledger.Attempt {
	return ledger.Attempt{Delivery: n, Try: 1, Due: due, Start: due, Done: done, Result: r, Then: ledger.Settled}
}

func took(w *ledger.Writer, n uint32, at time.Duration) {
	w.Call(ledger.Call{At: at, Event: n, Outcome: ledger.Took, Fault: ledger.None})
}

func TestBacklog(t *testing.T) {
	tests := []struct {
		name           string
		write          func(w *ledger.Writer)
		acked, backlog []int64
		effects        int64
	}{
		{"acked, applied two seconds later", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			w.Attempt(try(0, 0, 10*ms, ledger.OK))
			took(w, 0, 2010*ms)
		}, []int64{1, 0, 0}, []int64{1, 1, 0}, 1},
		{"the origin is the first due time", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			w.Attempt(try(0, 700*ms, 1600*ms, ledger.OK))
			took(w, 0, 1650*ms)
		}, []int64{1}, []int64{0}, 1},
		{"the effect before the ack is no backlog", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			took(w, 0, 500*ms)
			w.Attempt(try(0, 0, 1500*ms, ledger.OK))
		}, []int64{0, 1}, []int64{0, 0}, 1},
		{"lost stays", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			w.Attempt(try(0, 0, 10*ms, ledger.OK))
			event(w, ledger.Event{Number: 1}, ledger.Genuine)
			w.Attempt(try(1, 1000*ms, 1010*ms, ledger.OK))
			took(w, 1, 1020*ms)
		}, []int64{1, 1}, []int64{1, 1}, 1},
		{"superseded leaves with the newer version's effect", func(w *ledger.Writer) {
			for n := range uint32(2) {
				event(w, ledger.Event{Number: n, Resource: 7, Version: n, Flags: ledger.Latest}, ledger.Genuine)
				w.Attempt(try(n, 0, 10*ms, ledger.OK))
			}
			took(w, 1, 1010*ms)
		}, []int64{2, 0}, []int64{2, 0}, 1},
		{"an older version supersedes nothing", func(w *ledger.Writer) {
			for n := range uint32(2) {
				event(w, ledger.Event{Number: n, Resource: 7, Version: n, Flags: ledger.Latest}, ledger.Genuine)
				w.Attempt(try(n, 0, 10*ms, ledger.OK))
			}
			took(w, 0, 1010*ms)
		}, []int64{2, 0}, []int64{2, 1}, 1},
		{"poison leaves with its last refusal", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0, Flags: ledger.Poison}, ledger.Genuine)
			w.Attempt(try(0, 0, 10*ms, ledger.OK))
			for _, at := range []time.Duration{100 * ms, 1100 * ms} {
				w.Call(ledger.Call{At: at, Event: 0, Outcome: ledger.Poisoned, Fault: ledger.None})
			}
		}, []int64{1, 0}, []int64{1, 0}, 0},
		{"a forged success acks nothing, a phantom's effect is none of the day", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			w.Attempt(try(0, 0, 10*ms, ledger.Refused))
			event(w, ledger.Event{Number: 1, Flags: ledger.Phantom}, ledger.Forged)
			w.Attempt(try(1, 0, 10*ms, ledger.OK))
			took(w, 1, 20*ms)
		}, []int64{0}, []int64{0}, 0},
		{"a duplicate acks its event", func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			w.Attempt(try(0, 0, 10*ms, ledger.Refused))
			w.Delivery(ledger.Delivery{Number: 1, Class: ledger.DuplicateNewID, First: 0, Count: 1})
			w.Attempt(try(1, 1000*ms, 1010*ms, ledger.OK))
			took(w, 0, 1020*ms)
		}, []int64{0, 1}, []int64{0, 0}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := load(t, small{write: tt.write}.ledger(t))
			if diff := cmp.Diff(tt.acked, r.Series.Acked); diff != "" {
				t.Errorf("acked (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.backlog, r.Series.Backlog); diff != "" {
				t.Errorf("backlog (-want +got):\n%s", diff)
			}
			if got := sumOf(r.Series.Applied); got != tt.effects {
				t.Errorf("%d applied, want %d", got, tt.effects)
			}
		})
	}
}

func TestLatencySamples(t *testing.T) {
	twoSteps := ledger.Header{Steps: []string{"", "email"}, Expect: ledger.Expect{Steps: 3}}
	tests := []struct {
		name        string
		h           ledger.Header
		write       func(w *ledger.Writer)
		ack, effect []time.Duration
	}{
		{"from due, not from sent", ledger.Header{}, func(w *ledger.Writer) {
			event(w, ledger.Event{}, ledger.Genuine)
			w.Attempt(ledger.Attempt{Try: 1, Due: 0, Start: 400 * ms, Done: 500 * ms, Result: ledger.OK, Then: ledger.Settled})
			took(w, 0, 600*ms)
		}, []time.Duration{500 * ms}, []time.Duration{600 * ms}},
		{"a time-out counts in full, a reset does not", ledger.Header{}, func(w *ledger.Writer) {
			event(w, ledger.Event{Number: 0}, ledger.Genuine)
			w.Attempt(try(0, 0, 1000*ms, ledger.Unanswered))
			event(w, ledger.Event{Number: 1}, ledger.Genuine)
			w.Attempt(try(1, 0, 5*ms, ledger.Unanswered))
		}, []time.Duration{1000 * ms}, nil},
		{"the effect of an unanswered attempt", ledger.Header{}, func(w *ledger.Writer) {
			event(w, ledger.Event{}, ledger.Genuine)
			w.Attempt(try(0, 0, 1000*ms, ledger.Unanswered))
			took(w, 0, 300*ms)
			w.Attempt(ledger.Attempt{Try: 2, Due: 2000 * ms, Start: 2000 * ms, Done: 2010 * ms, Result: ledger.OK, Then: ledger.Settled})
		}, []time.Duration{10 * ms, 1000 * ms}, []time.Duration{300 * ms}},
		{"excused until five seconds after the heal", ledger.Header{}, func(w *ledger.Writer) {
			for n, due := range []time.Duration{0, 1500 * ms, 6900 * ms, 7100 * ms} {
				event(w, ledger.Event{Number: uint32(n)}, ledger.Genuine)
				w.Attempt(try(uint32(n), due, due+time.Duration(n+1)*ms, ledger.OK))
			}
			w.Fault(ledger.Fault{At: 1000 * ms, Side: ledger.Broker, Phase: ledger.Begin, Name: "broker.stall"})
			w.Fault(ledger.Fault{At: 2000 * ms, Side: ledger.Broker, Phase: ledger.Heal, Name: "broker.stall"})
		}, []time.Duration{1 * ms, 4 * ms}, nil},
		{"a worker fault excuses nothing", ledger.Header{}, func(w *ledger.Writer) {
			event(w, ledger.Event{}, ledger.Genuine)
			w.Attempt(try(0, 1500*ms, 1502*ms, ledger.OK))
			w.Fault(ledger.Fault{At: 1000 * ms, Side: ledger.Worker, Phase: ledger.Begin, Name: "worker.kill"})
		}, []time.Duration{2 * ms}, nil},
		{"to the last of two steps", twoSteps, func(w *ledger.Writer) {
			event(w, ledger.Event{}, ledger.Genuine)
			w.Attempt(try(0, 0, 1*ms, ledger.OK))
			took(w, 0, 100*ms)
			w.Call(ledger.Call{At: 400 * ms, Event: 0, Step: 1, Outcome: ledger.Took, Fault: ledger.None})
			took(w, 0, 900*ms)
		}, []time.Duration{1 * ms}, []time.Duration{400 * ms}},
		{"half an effect has no latency", twoSteps, func(w *ledger.Writer) {
			event(w, ledger.Event{}, ledger.Genuine)
			w.Attempt(try(0, 0, 1*ms, ledger.OK))
			took(w, 0, 100*ms)
		}, []time.Duration{1 * ms}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := load(t, small{tt.h, tt.write}.ledger(t))
			if got := r.Verdict.LatencyMS; got.Ack.Count != r.Ack.TotalCount() || got.Effect.Count != r.Effect.TotalCount() {
				t.Errorf("the verdict has %d ack and %d effect samples, the report %d and %d", got.Ack.Count, got.Effect.Count, r.Ack.TotalCount(), r.Effect.TotalCount())
			}
			if diff := cmp.Diff(tt.ack, samples(r.Ack)); diff != "" {
				t.Errorf("ack (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.effect, samples(r.Effect)); diff != "" {
				t.Errorf("effect (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongRunsStayBounded(t *testing.T) {
	s := newSeries(0, 40*24*time.Hour)
	if s.Len() > maxPoints+1 || s.Step < 2*time.Second || s.Step%time.Second != 0 {
		t.Errorf("%d points of %v for 40 days", s.Len(), s.Step)
	}
	if s := newSeries(0, 90*time.Second); s.Step != time.Second || s.Len() != 91 {
		t.Errorf("%d points of %v for 90 s, want 91 of 1s", s.Len(), s.Step)
	}
}

func TestAMillionEventsStaySmall(t *testing.T) {
	if got := unsafe.Sizeof(entry{}) + unsafe.Sizeof(delivery{}); got > 24 {
		t.Errorf("%d bytes for an event and its delivery, want at most 24", got)
	}
}

func TestChunks(t *testing.T) {
	var c chunks[int]
	*c.at(4_000_000_000) = 3
	*c.at(5) = 4
	if got := c.get(4_000_000_000) + c.get(5) + c.get(6) + c.get(3_000_000_000); got != 7 {
		t.Errorf("sum of entries = %d, want 7", got)
	}
	n := 0
	c.numbers(func(uint32) { n++ })
	if n != 2*chunkSize {
		t.Errorf("%d entries, want two chunks", n)
	}
}

// BenchmarkCollect reads a ledger of a day for the report.
func BenchmarkCollect(b *testing.B) {
	d := &day{seed: 1, events: 50_000, faults: usualFaults()}
	data := d.write(b)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		r := &Report{Verdict: &verdict.Verdict{}}
		if err := r.collect(bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50_000, "ns/event")
}
