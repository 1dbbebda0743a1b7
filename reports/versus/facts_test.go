package versus

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reports/ledger"
)

const ms = time.Millisecond

// story is a run of a hundred deliveries a second for ten seconds, each answered after 5 ms and worked off after 20 ms more, of which the gated segment has the last eight.
type story struct {
	// dark is when nothing is answered, later what is due in it is answered at its end.
	dark, darkWork span
	// slower lets the n-th effect come n times this later: the backlog grows.
	slower time.Duration
	faults []ledger.Fault
	cut    bool
}

func (s story) run(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.Create(f, ledger.Header{
		RunID: "r", Scenario: "s", Providers: []ledger.Provider{{Name: "github", OneShot: true, Timeout: 10 * time.Second}}, Steps: []string{""},
		Segments: []ledger.Segment{{Name: "warm-up", Until: 12 * time.Hour, Scale: 1}, {Name: "window", From: 12 * time.Hour, Until: 24 * time.Hour, Scale: 1, Gated: true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(1000) {
		s.delivery(w, n)
	}
	for _, x := range s.faults {
		w.Fault(x)
	}
	s.samples(w)
	if s.cut {
		w.Flush()
	} else if err := w.Close(ledger.End{At: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s story) delivery(w *ledger.Writer, n uint32) {
	due := time.Duration(n) * 10 * ms
	segment := uint8(0)
	if due >= 2*time.Second {
		segment = 1
	}
	after := func(t time.Duration, dark span) time.Duration {
		if t >= dark.from && t < dark.until {
			return dark.until
		}
		return t
	}
	done := after(due+5*ms, s.dark)
	w.Event(ledger.Event{Number: n, ID: "e", Resource: n, Version: 1})
	w.Delivery(ledger.Delivery{Number: n, Class: ledger.Genuine, First: n, Count: 1})
	w.Attempt(ledger.Attempt{Delivery: n, Try: 1, Segment: segment, Due: due, Start: due, Done: done, Status: 200, Result: ledger.OK, Then: ledger.Settled})
	w.Call(ledger.Call{At: after(max(due+25*ms, done)+time.Duration(n)*s.slower, s.darkWork), Event: n, Outcome: ledger.Took, Fault: ledger.None})
}

// samples: a worker that was killed and came back, with another beside it, and the runner.
func (story) samples(w *ledger.Writer) {
	for i, cpu := range []float64{1, 2, 0.5, 1.5} {
		at := time.Duration(i) * time.Second
		w.Sample(ledger.Sample{At: at, Name: "cpu:worker-1", Value: cpu})
		w.Sample(ledger.Sample{At: at, Name: "cpu:runner", Value: float64(i)})
		w.Sample(ledger.Sample{At: at, Name: "rss:worker-1", Value: 10e6 * float64(i+1)})
		w.Sample(ledger.Sample{At: at, Name: "rss:receiver-1", Value: 10e6 * float64(4-i)})
		w.Sample(ledger.Sample{At: at, Name: "depth", Value: 7})
	}
}

func kill(from, until time.Duration) []ledger.Fault {
	f := ledger.Fault{Name: brokerKill, Target: "redis", Side: ledger.Broker}
	begin, heal := f, f
	begin.At, begin.Phase, heal.At, heal.Phase = from, ledger.Begin, until, ledger.Heal
	return []ledger.Fault{begin, heal}
}

// again is a second kill.
func again(from, until time.Duration) []ledger.Fault {
	list := kill(from, until)
	list[0].Number, list[1].Number = 1, 1
	return list
}

func read(t *testing.T, s story) Facts {
	t.Helper()
	f, err := Read(s.run(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFacts(t *testing.T) {
	got := read(t, story{})
	want := Facts{
		AcksPerS: new(100.0), EffectsPerS: new(100.0), PipelineCPUS: new(3.5), RunnerCPUS: new(3.0), PipelineMB: new(50.0),
		Window: Window{Seconds: 7.99, OfferedPerS: 800 / 7.99, AckedPerS: 799 / 7.99, EffectsPerS: 797 / 7.99, BacklogEnd: 2},
	}
	// The last instants of the window hold one event more or less.
	near := cmp.Options{cmpopts.EquateApprox(0.01, 0.1), cmpopts.IgnoreFields(Window{}, "BacklogEnd")}
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("facts differ (-want +got):\n%s", diff)
	}
	if got.Window.BacklogEnd < 1 || got.Window.BacklogEnd > 3 {
		t.Errorf("the backlog ends with %d events, want the two or so that are being worked on", got.Window.BacklogEnd)
	}
}

// TestBacklogGrows: effects that come 1 ms later each time fall behind by 100 ms in a second: 100 * (1 - 1/1.1) events.
func TestBacklogGrows(t *testing.T) {
	steady, growing := read(t, story{}).Window.BacklogPerS, read(t, story{slower: 1 * ms}).Window.BacklogPerS
	if math.Abs(steady) > 0.5 {
		t.Errorf("a steady backlog grows by %.2f events a second", steady)
	}
	if want := 100 * (1 - 1/1.1); math.Abs(growing-want) > 0.5 {
		t.Errorf("the backlog grows by %.2f events a second, want %.2f", growing, want)
	}
}

func TestRecovery(t *testing.T) {
	at := func(from, until time.Duration) span { return span{from, until} }
	for _, tt := range []struct {
		name       string
		story      story
		acks, work float64 // 0: not known
		never      bool
	}{
		{"no kill", story{dark: at(3*time.Second, 4*time.Second)}, 0, 0, false},
		{"both stood still", story{faults: kill(3*time.Second, 3500*ms), dark: at(3*time.Second, 4*time.Second), darkWork: at(3*time.Second, 5*time.Second)}, 1, 2, false},
		// What slips through in the milliseconds until it is dead is no recovery.
		{"one more slipped through", story{faults: kill(2990*ms, 3500*ms), dark: at(3*time.Second, 4*time.Second), darkWork: at(3*time.Second, 4*time.Second)}, 1, 1, false},
		{"a pause that has nothing to do with it", story{faults: kill(3*time.Second, 3100*ms), dark: at(8*time.Second, 9*time.Second)}, 0.01, 0.01, false},
		{"the longer of two", story{faults: append(kill(3*time.Second, 3500*ms), again(6*time.Second, 6100*ms)...), dark: at(3*time.Second, 4*time.Second)}, 1, 1, false},
		{"killed at the end", story{faults: kill(19*time.Second, 19500*ms)}, 0, 0, true},
		{"the heal failed", story{faults: kill(3*time.Second, 4*time.Second)[:1]}, 0, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := read(t, tt.story)
			for _, x := range []struct {
				what string
				got  *float64
				want float64
			}{{"acks", got.AcksBackS, tt.acks}, {"work", got.WorkBackS, tt.work}} {
				if (x.got == nil) != (x.want == 0) || x.got != nil && math.Abs(*x.got-x.want) > 0.03 {
					t.Errorf("%s are back after %v s, want %v", x.what, figureOf(x.got), x.want)
				}
			}
			if got.NeverBack != tt.never {
				t.Errorf("never back: %v, want %v", got.NeverBack, tt.never)
			}
		})
	}
}

func TestReadCutAndDamaged(t *testing.T) {
	if got := read(t, story{cut: true}); got.AcksPerS == nil || *got.AcksPerS != 100 {
		t.Errorf("a cut ledger has %s acks a second, want what stands before the cut", figureOf(got.AcksPerS))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ledger"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "not a ledger") {
		t.Errorf("error %v, want that it is no ledger", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("a directory without a ledger was read")
	}
}
