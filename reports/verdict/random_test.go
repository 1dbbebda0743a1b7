package verdict_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// maker makes random histories: legal ones, in which everything that a run may contain happens often.
type maker struct {
	rng *rand.Rand
	b   *book
	now time.Duration
}

func (m *maker) chance(percent int) bool { return m.rng.IntN(100) < percent }

func (m *maker) tick() time.Duration {
	m.now += time.Duration(m.rng.IntN(50_000)) * time.Microsecond
	return m.now
}

// randomBook makes the history of a seed.
func randomBook(seed uint64) *book {
	m := &maker{rng: rand.New(rand.NewPCG(seed, 1)), b: newBook()}
	b := m.b
	if m.chance(40) {
		b.header.Steps, b.header.Expect.Steps = []string{"", "charge", "email"}, []uint64{0b001, 0b110, 0b111, 0b100}[m.rng.IntN(4)]
	}
	for range 1 + m.rng.IntN(12) {
		m.story()
	}
	m.edges()
	switch {
	case m.chance(10):
		b.end.Drain = ledger.NotDrained
	case m.chance(5):
		b.end = nil
	}
	if b.end != nil {
		b.end.At, b.end.LoadEnd, b.end.DrainFrom = m.now+s, m.now, m.now
		b.end.DeadLettersListed = !m.chance(10)
		b.end.Interrupted = m.chance(5)
	}
	return b
}

// story is a delivery of one or more events and all that follows from it.
func (m *maker) story() {
	b, count := m.b, 1
	if m.chance(20) {
		count = 2 + m.rng.IntN(4)
	}
	provider := uint8(m.rng.IntN(2))
	var flags ledger.EventFlags
	if m.chance(10) {
		flags |= ledger.Poison
	}
	if m.chance(30) {
		flags |= ledger.Latest
	}
	first := uint32(len(b.ids))
	for range count {
		b.eventOf(ledger.Event{ID: fmt.Sprintf("evt_%d", len(b.ids)), Provider: provider, Resource: uint32(m.rng.IntN(4)), Version: uint32(m.rng.IntN(3)), Flags: flags})
	}
	if m.chance(10) {
		m.attempts(b.deliver(ledger.Forged, provider, first, uint16(count)), 95)
	}
	if m.chance(3) {
		m.effects(first, count)
		return // only forged, or never sent at all
	}
	m.attempts(b.deliver(ledger.Genuine, provider, first, uint16(count)), 20)
	if m.chance(15) {
		class := []ledger.Class{ledger.DuplicateSameID, ledger.DuplicateNewID}[m.rng.IntN(2)]
		m.attempts(b.deliver(class, provider, first, uint16(count)), 20)
	}
	m.effects(first, count)
}

// attempts plays a delivery's schedule: bad is the chance that an attempt fails.
func (m *maker) attempts(delivery uint32, bad int) {
	if m.chance(5) {
		return // never sent
	}
	for range 4 {
		at, took := m.tick(), time.Duration(m.rng.IntN(20_000))*time.Microsecond
		if !m.chance(bad) {
			m.b.try(delivery, at, took, ledger.OK, ledger.Settled)
			return
		}
		result := []ledger.Result{ledger.Refused, ledger.Unanswered, ledger.Unconnected}[m.rng.IntN(3)]
		then := []ledger.Then{ledger.Retry, ledger.Retry, ledger.Retry, ledger.Exhausted, ledger.Disabled}[m.rng.IntN(5)]
		if result == ledger.Refused && m.chance(20) {
			then = ledger.Ended
		}
		m.b.try(delivery, at, took, result, then)
		if then != ledger.Retry {
			return
		}
	}
}

func (m *maker) effects(first uint32, count int) {
	for e := first; e < first+uint32(count); e++ {
		for step := range m.b.header.Steps {
			if m.b.header.Expect.Steps>>step&1 == 0 && !m.chance(3) {
				continue
			}
			for !m.chance(5) {
				m.b.put(ledger.Call{At: m.tick(), Event: e, Step: uint8(step), Outcome: ledger.Took, Fault: ledger.None})
				if !m.chance(4) {
					break
				}
			}
		}
		if m.chance(20) {
			m.b.put(ledger.Call{At: m.tick(), Event: e, Outcome: ledger.Replayed + ledger.Outcome(m.rng.IntN(9)), Fault: ledger.None})
		}
		if m.chance(8) {
			m.b.put(ledger.DeadLetter{Event: e, Claimed: uint64(m.rng.IntN(3)), Expected: 1})
		}
	}
}

// edges adds what no event carries.
func (m *maker) edges() {
	b := m.b
	for range m.rng.IntN(3) {
		m.attempts(b.deliver(ledger.Malformed, stripe, ledger.None, 0), 80)
	}
	for range m.rng.IntN(2) {
		p := b.event(fmt.Sprintf("phantom_%d", len(b.ids)), ledger.Phantom)
		m.attempts(b.deliver(ledger.Forged, stripe, p, 1), 95)
		if m.chance(10) {
			b.effect(p, m.tick())
		}
	}
	if m.chance(4) {
		b.put(ledger.Call{At: m.tick(), Event: ledger.None, ID: "stranger", Outcome: ledger.Took, Fault: ledger.None})
	}
	for i := range uint32(m.rng.IntN(3)) {
		from := time.Duration(m.rng.Int64N(int64(m.now + 1)))
		b.fault(i, ledger.Worker+ledger.Side(m.rng.IntN(7)), from, from+100*ms)
	}
	b.put(ledger.SegmentMark{At: 0, Begin: true})
	b.put(ledger.SegmentMark{At: m.now})
}

// randomHistories is how many histories the property tests try.
func randomHistories(t *testing.T) uint64 {
	if testing.Short() {
		return 300
	}
	return 2000
}

// TestAgainstOracle: on thousands of random histories the judge and the plain oracle agree on every count, on every id, and on the outcome.
func TestAgainstOracle(t *testing.T) {
	outcomes := map[verdict.Outcome]int{}
	for seed := range randomHistories(t) {
		b := randomBook(seed)
		v := judge(t, b)
		want := newOracle(b.header, b.records, b.end).judge()
		if diff := cmp.Diff(want.Counts, v.Counts); diff != "" {
			t.Fatalf("seed %d: counts (-oracle +judge):\n%s", seed, diff)
		}
		requireExamples(t, finding(t, v, "no-loss"), want.Lost)
		requireExamples(t, finding(t, v, "no-double-effect"), want.Doubled)
		got := verdict.Pass
		for _, name := range []string{"no-loss", "no-double-effect", "no-unexpected-effect", "no-forgery"} {
			got = verdict.Merge(got, finding(t, v, name).Outcome)
		}
		if w := want.want(); got != w && (w != verdict.Pass || b.end != nil && b.end.Drain == ledger.Drained) {
			t.Fatalf("seed %d: the four invariants say %s, the oracle %s\n%s", seed, got, w, want)
		}
		outcomes[v.Outcome]++
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for _, o := range []verdict.Outcome{verdict.Pass, verdict.Fail, verdict.Unknown} {
		if outcomes[o] < 20 {
			t.Errorf("only %d histories came out %s: the maker is one-sided (%v)", outcomes[o], o, outcomes)
		}
	}
}

// requireExamples wants the first ten ids, whatever is said about them.
func requireExamples(t *testing.T, f verdict.Finding, ids []string) {
	t.Helper()
	ids = ids[:min(len(ids), 10)]
	if len(f.Examples) != len(ids) {
		t.Fatalf("%s names %q, want %q", f.Invariant, f.Examples, ids)
	}
	for i, id := range ids {
		if f.Examples[i] != id && !strings.HasPrefix(f.Examples[i], id+" ") {
			t.Errorf("%s names %q, want %q", f.Invariant, f.Examples[i], id)
		}
	}
}

// TestOrderOfConcurrentRecords: records of different kinds are written by different goroutines. As long as everything is introduced before it is
// referred to, their order changes nothing at all.
func TestOrderOfConcurrentRecords(t *testing.T) {
	for seed := range randomHistories(t) / 5 {
		b := randomBook(seed)
		want := verdictText(t, b)
		rng := rand.New(rand.NewPCG(seed, 2))
		for range 3 {
			b.records = interleave(rng, b.records)
			if diff := cmp.Diff(want, verdictText(t, b)); diff != "" {
				t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
			}
		}
	}
}

func verdictText(t *testing.T, b *book) string {
	t.Helper()
	v := judge(t, b)
	v.Resources.LedgerBytesPerEvent = nil // time differences have other lengths in another order
	var out bytes.Buffer
	if err := v.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// interleave keeps the order within each kind and mixes the kinds at random, introductions before references.
func interleave(rng *rand.Rand, records []any) []any {
	lanes := make([][]any, 5)
	for _, r := range records {
		lane := 4
		switch r.(type) {
		case ledger.Event:
			lane = 0
		case ledger.Delivery:
			lane = 1
		case ledger.Attempt:
			lane = 2
		case ledger.Call:
			lane = 3
		}
		lanes[lane] = append(lanes[lane], r)
	}
	var out []any
	events, deliveries := uint32(0), uint32(0)
	for len(out) < len(records) {
		i := rng.IntN(len(lanes))
		if len(lanes[i]) == 0 || !introducedIn(lanes[i][0], events, deliveries) {
			continue
		}
		switch lanes[i][0].(type) {
		case ledger.Event:
			events++
		case ledger.Delivery:
			deliveries++
		}
		out, lanes[i] = append(out, lanes[i][0]), lanes[i][1:]
	}
	return out
}

// introducedIn reports whether what a record refers to is among the first events and deliveries.
func introducedIn(r any, events, deliveries uint32) bool {
	switch r := r.(type) {
	case ledger.Delivery:
		return r.Count == 0 || r.First+uint32(r.Count) <= events
	case ledger.Attempt:
		return r.Delivery < deliveries
	case ledger.Call:
		return r.Event == ledger.None || r.Event < events
	case ledger.DeadLetter:
		return r.Event == ledger.None || r.Event < events
	default:
		return true
	}
}

// TestVerdictRoundTrip: what Write writes, json reads back.
func TestVerdictRoundTrip(t *testing.T) {
	for seed := range uint64(50) {
		want := judge(t, randomBook(seed))
		var out bytes.Buffer
		if err := want.Write(&out); err != nil {
			t.Fatal(err)
		}
		var got verdict.Verdict
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, got.Env); err != nil {
			t.Fatal(err)
		}
		got.Env = compact.Bytes()
		if diff := cmp.Diff(want, &got); diff != "" {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}
