package verdict

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
)

// TestPack: what is kept of an attempt comes back, at the edges of every field.
func TestPack(t *testing.T) {
	us := time.Microsecond
	for _, a := range []ledger.Attempt{
		{Due: 0, Start: 0, Done: 0, Result: ledger.OK},
		{Due: 1 * us, Start: 3 * us, Done: 7 * us, Segment: 255, Result: ledger.Unconnected, Blocked: true},
		{Due: maxDue * us, Start: (maxDue + 5) * us, Done: (maxDue + 1<<31 - 1) * us, Segment: 1, Result: ledger.Refused},
		{Due: 90 * 24 * time.Hour, Start: 90*24*time.Hour + time.Second, Done: 90*24*time.Hour + time.Minute, Result: ledger.Unanswered},
	} {
		for _, class := range []ledger.Class{ledger.Genuine, ledger.Forged} {
			p := pack(&a, &delivery{class: class, provider: 255})
			got := []any{p.due(), p.start(), p.done(), p.service(), p.segment(), p.provider(), p.result(), p.blocked(), p.genuine()}
			want := []any{micros(a.Due), micros(a.Start), micros(a.Done), micros(a.Done - a.Start), a.Segment, uint8(255), a.Result, a.Blocked, class == ledger.Genuine}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", a, diff)
			}
		}
	}
}

func TestSpan(t *testing.T) {
	tests := []struct{ us, want int64 }{
		{-1, 0}, {0, 0}, {1, 1}, {1<<31 - 1, 1<<31 - 1}, {1 << 31, 1 << 31}, {1<<31 + 15, 1 << 31}, {1<<31 + 16, 1<<31 + 16},
		{longest, longest}, {math.MaxInt64, spanExact + (math.MaxUint32-spanExact)*spanStep},
	}
	for _, tc := range tests {
		if got := spanOf(tc.us).micros(); got != tc.want {
			t.Errorf("span of %d us is %d us, want %d", tc.us, got, tc.want)
		}
	}
}

func TestPaged(t *testing.T) {
	var p paged[int]
	if p.get(0) != nil || p.get(math.MaxUint32) != nil {
		t.Error("an empty array has slots")
	}
	for _, i := range []uint32{5, pageSize, 3 * pageSize, 0} {
		*p.at(i) = int(i) + 1
	}
	var got []int
	for i, v := range p.all() {
		if *v != 0 {
			got = append(got, int(i), *v)
		}
	}
	if want := []int{0, 1, 5, 6, pageSize, pageSize + 1, 3 * pageSize, 3*pageSize + 1}; !slices.Equal(got, want) {
		t.Errorf("slots %v, want %v", got, want)
	}
	if p.get(2*pageSize) != nil {
		t.Error("a page that was never written has slots")
	}
}

func TestPercentileRanks(t *testing.T) {
	for _, n := range []int64{1, 2, 10, 60, 99, 100, 101, 1000, 1060} {
		r := new(recorder)
		for i := range n {
			r.record(i + 1)
		}
		for _, p := range []float64{1, 50, 90, 99, 99.9} {
			// Up to 2047 us the histogram is exact, so that the nearest rank, rounded up, is the value itself.
			want := int64(math.Ceil(p/100*float64(n) - 1e-9))
			if got := r.percentile(p); got != want {
				t.Errorf("p%v of 1 to %d is %d, want %d", p, n, got, want)
			}
		}
	}
}

// TestPercentileEnds: the 0th and the 100th percentile, of samples at and beyond both ends of the range, neither panic nor leave it
// (https://github.com/HdrHistogram/hdrhistogram-go/issues/49).
func TestPercentileEnds(t *testing.T) {
	for _, values := range [][]int64{{0}, {-100_000}, {longest}, {0, 1, longest}, {longest + 1, -1}} {
		r := new(recorder)
		for _, v := range values {
			r.record(v)
		}
		low, high := r.percentile(0), r.percentile(100)
		if low < 0 || low > high || high > longest || high != r.max {
			t.Errorf("of %v: p0 %d, p100 %d, maximum %d", values, low, high, r.max)
		}
	}
}

// TestRecorderKeepsCount: no value is dropped, whatever it is, also by a merge.
func TestRecorderKeepsCount(t *testing.T) {
	values := []int64{-5, 0, 1, 2047, 2048, 1e6, longest, longest + 1, math.MaxInt64}
	a, b := new(recorder), new(recorder)
	for _, v := range values {
		a.record(v)
		b.record(v)
	}
	a.merge(b)
	if a.count() != int64(2*len(values)) || a.clamped != 6 || a.max != longest {
		t.Errorf("count %d, clamped %d, max %d; want %d, 6, %d", a.count(), a.clamped, a.max, 2*len(values), longest)
	}
}

func TestBusiest(t *testing.T) {
	tests := []struct {
		name string
		in   []int64
		want int
	}{
		{"one", []int64{5}, 1},
		{"across a whole second", []int64{900_000, 950_000, 1_050_000, 1_100_000}, 4},
		{"a second apart is another window", []int64{0, second, 2 * second}, 1},
		{"just below", []int64{0, second - 1, second, 2*second - 1}, 2},
	}
	for _, tc := range tests {
		if got := busiest(tc.in); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestExcuses(t *testing.T) {
	h := &History{faults: map[uint32]*occurrence{
		0: {side: ledger.Broker, begin: 10 * second, heal: 12 * second},
		1: {side: ledger.Disk, begin: 16 * second, heal: 18 * second},
		2: {side: ledger.Worker, begin: 30 * second, heal: 40 * second},
		3: {side: ledger.Clock, begin: 60 * second, heal: -1},
		4: {side: ledger.Ingress, begin: -1, heal: -1, broken: 50 * second},
	}}
	got := h.excuses()
	want := []window{{10 * second, 23 * second}, {60 * second, forever}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(window{})); diff != "" {
		t.Fatalf("windows (-want +got):\n%s", diff)
	}
	for at, in := range map[int64]bool{0: false, 10*second - 1: false, 10 * second: true, 23 * second: true, 23*second + 1: false, 35 * second: false, 60 * second: true, 1e15: true} {
		if within(got, at) != in {
			t.Errorf("excused at %d us: %v, want %v", at, !in, in)
		}
	}
}

// TestImbalances: every sum is watched. A counter that moves alone is caught.
func TestImbalances(t *testing.T) {
	good := Counts{
		Events: 20, Acked: 15, CutOff: 1, Unanswered: 1, Refused: 1, Undelivered: 2, Suppressed: 1, Applied: 10, Superseded: 1, DeadLettered: 1, Lost: 1, Doubled: 1, Pending: 1,
		Absent: 3, Recovered: 1, DoubledUnacked: 1, Attempts: 4, AttemptsOK: 1, AttemptsRefused: 1, AttemptsUnanswered: 1, AttemptsUnconnected: 1,
	}
	if bad := imbalances(good); bad != nil {
		t.Fatalf("balanced counts: %q", bad)
	}
	fields := []func(*Counts) *int64{
		func(c *Counts) *int64 { return &c.Events }, func(c *Counts) *int64 { return &c.Acked }, func(c *Counts) *int64 { return &c.CutOff },
		func(c *Counts) *int64 { return &c.Unanswered }, func(c *Counts) *int64 { return &c.Refused }, func(c *Counts) *int64 { return &c.Undelivered },
		func(c *Counts) *int64 { return &c.Applied }, func(c *Counts) *int64 { return &c.Superseded }, func(c *Counts) *int64 { return &c.DeadLettered },
		func(c *Counts) *int64 { return &c.Lost }, func(c *Counts) *int64 { return &c.Doubled }, func(c *Counts) *int64 { return &c.Pending },
		func(c *Counts) *int64 { return &c.Absent }, func(c *Counts) *int64 { return &c.Recovered }, func(c *Counts) *int64 { return &c.DoubledUnacked },
		func(c *Counts) *int64 { return &c.Attempts }, func(c *Counts) *int64 { return &c.AttemptsOK }, func(c *Counts) *int64 { return &c.AttemptsRefused },
		func(c *Counts) *int64 { return &c.AttemptsUnanswered }, func(c *Counts) *int64 { return &c.AttemptsUnconnected },
	}
	for i, field := range fields {
		c := good
		*field(&c)++
		if len(imbalances(c)) == 0 {
			t.Errorf("counter %d moved alone and nobody noticed", i)
		}
	}
	c := good
	c.Suppressed = 3
	if len(imbalances(c)) != 1 {
		t.Error("more suppressed than undelivered, and nobody noticed")
	}
}

// TestSumsThatDoNotBalance: such a history gets the finding, and is unknown at best.
func TestSumsThatDoNotBalance(t *testing.T) {
	h := wholeHistory()
	h.counts.Events, h.counts.Acked = 2, 1
	v, err := h.verdict(0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(v.Findings, func(f Finding) bool { return f.Invariant == "sums-balance" })
	if i < 0 || v.Findings[i].Outcome != Unknown || v.Outcome != Unknown || !strings.Contains(v.Findings[i].Observed, "events is 2") {
		t.Errorf("outcome %s, findings %+v", v.Outcome, v.Findings)
	}
	h.counts = Counts{}
	if f := check(sumsBalance{}, h); f.Outcome != Pass {
		t.Errorf("balanced sums: %+v", f)
	}
}

// wholeHistory is a history of nothing, complete and drained.
func wholeHistory() *History {
	h := &History{header: &ledger.Header{}, end: &ledger.End{Drain: ledger.Drained, DeadLettersListed: true}}
	h.dist = h.measure()
	return h
}

// broken is an invariant that does not come to an answer.
type broken struct{ panics bool }

func (broken) Name() string { return "broken" }

func (b broken) Check(*History) (Finding, error) {
	if b.panics {
		panic("index out of range")
	}
	return Finding{Outcome: Pass}, errors.New("cannot tell")
}

// TestBrokenChecks: a check that fails or panics has not passed.
func TestBrokenChecks(t *testing.T) {
	for _, inv := range []broken{{panics: true}, {}} {
		f := check(inv, wholeHistory())
		if f.Outcome != Unknown || f.Invariant != "broken" || f.Observed == "" || f.Examples == nil {
			t.Errorf("finding %+v, want unknown with a reason", f)
		}
	}
}

// TestDescriptions: every check that can be asked is described.
func TestDescriptions(t *testing.T) {
	described := map[string]bool{}
	for _, d := range Invariants() {
		if described[d.Name] || d.Doc == "" {
			t.Errorf("%q is described twice or not at all", d.Name)
		}
		described[d.Name] = true
	}
	h := wholeHistory()
	h.header.Expect = ledger.Expect{Delivered: true, DeadLettersAccounted: new(0), Availability: 1, Recovery: 1, Latency: []ledger.LatencyLimit{{Of: "ack", Percentile: 99.9}},
		Ordered: true, DebounceFinal: true, DebounceBounds: &ledger.DebounceBounds{}, LaneIsolation: &ledger.LaneIsolation{Times: 2}, RateLimit: new(0.05)}
	h.faults = map[uint32]*occurrence{0: {}}
	h.counts.Events = 1
	asked := map[string]bool{}
	for _, inv := range invariantsOf(h) {
		name, _, _ := strings.Cut(inv.Name(), "-ack-p99.9")
		asked[name] = true
	}
	if diff := cmp.Diff(described, asked); diff != "" {
		t.Errorf("described and asked differ (-described +asked):\n%s", diff)
	}
}

func TestPrintable(t *testing.T) {
	tests := []struct{ in, want string }{
		{"evt_1", "evt_1"}, {"größer 日本", "größer 日本"}, {"a\x1b[31mb\n", `a\x1b[31mb\n`}, {"\xff", "\uFFFD"},
		{strings.Repeat("x", 300), strings.Repeat("x", maxName) + "..."}, {"\u202eevil", `\u202eevil`},
	}
	for _, tc := range tests {
		if got := printable(tc.in); got != tc.want {
			t.Errorf("printable(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
}

func ExampleInvariants() {
	for _, d := range Invariants()[:3] {
		fmt.Println(d.Name, d.Always)
	}
	// Output:
	// ledger-complete true
	// drained true
	// no-loss true
}
