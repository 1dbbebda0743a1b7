package loadgen

import (
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// traffic is a day with everything in it.
func traffic(events int) Traffic {
	return Traffic{
		Seed: 42, RunID: "run-1", Events: events, Day: midnight, Schedule: evenly(time.Second),
		Mix:                 []Share{share(acme(), 5), share(bulk(), 3), share(token(), 2)},
		VersionsPerResource: 4,
		Inject: Inject{
			Duplicates: 0.10, NewIDDuplicates: 0.05, OutOfOrder: 0.08, Forged: 0.06, Expired: 0.04, Malformed: 0.02, Poison: 0.03, PoisonItems: 0.2,
		},
	}
}

// planAll walks a whole day.
func planAll(t testing.TB, traffic Traffic) (*stream, *record, []plan) {
	t.Helper()
	books := newRecord(t)
	s, err := newStream(&traffic, books)
	if err != nil {
		t.Fatal(err)
	}
	var plans []plan
	last := time.Duration(-1)
	for {
		day, ok := s.frontier()
		if !ok {
			break
		}
		if day < last {
			t.Fatalf("the frontier falls from %v to %v", last, day)
		}
		last = day
		for _, p := range s.advance() {
			if p.day < day || p.wait < 0 {
				t.Fatalf("plan %d is due at %v + %v, before its slot at %v", p.seq, p.day, p.wait, day)
			}
			plans = append(plans, p)
		}
	}
	return s, books, plans
}

// show prints what a plan would send at a fixed instant.
func show(p *plan, now time.Time) string {
	req := provider.Request{Header: map[string][]string{}}
	p.write(&req, 1, provider.Answer{}, now)
	return fmt.Sprintf("%v %v %v %v %v %s\n", p.seq, p.moment, p.class, p.flaw, req.Header, req.Body)
}

func TestStreamSendsEveryEventOnce(t *testing.T) {
	const events = 20_000
	s, books, plans := planAll(t, traffic(events))
	genuine := make([]int, events)
	perProvider := map[string]int{}
	for _, p := range plans {
		for i, e := range p.slot.events {
			if e.Number != p.slot.events[0].Number+uint32(i) {
				t.Fatalf("plan %d: event %d is not consecutive", p.seq, e.Number)
			}
			if p.class == ledger.Genuine {
				genuine[e.Number]++
				perProvider[p.slot.role.Provider.Name]++
			}
		}
	}
	for n, times := range genuine {
		if times != 1 {
			t.Fatalf("event %d has %d genuine deliveries", n, times)
		}
	}
	for name, want := range map[string]float64{"acme": 0.5, "bulk": 0.3, "token": 0.2} {
		if got := float64(perProvider[name]) / events; math.Abs(got-want) > 0.02 {
			t.Errorf("%s has %.3f of the events, want %.3f", name, got, want)
		}
	}
	if got, want := len(books.events), events+int(s.phantoms); got != want {
		t.Errorf("%d events introduced, want %d planned and %d phantoms", got, events, s.phantoms)
	}
	for n, e := range books.events {
		if phantom := e.Flags&ledger.Phantom != 0; phantom != (n >= events) {
			t.Errorf("event %d: phantom %t", n, phantom)
		}
	}
	if len(s.held) != 0 {
		t.Errorf("%d slots are still held", len(s.held))
	}
}

func TestStreamGivesVersions(t *testing.T) {
	for _, versions := range []int{0, 1, 3, 4, 300} {
		t.Run(fmt.Sprint(versions), func(t *testing.T) {
			in := traffic(30_000)
			in.VersionsPerResource, in.Inject = versions, Inject{}
			s, books, plans := planAll(t, in)
			owner, newest := map[uint32]string{}, map[uint32]uint32{}
			key := map[uint32]uint64{}
			for _, p := range plans {
				name := p.slot.role.Provider.Name
				for _, e := range p.slot.events {
					if other, ok := owner[e.Resource]; ok && (other != name || key[e.Resource] != e.ResourceKey) {
						t.Fatalf("resource %d belongs to %s and %s", e.Resource, other, name)
					}
					owner[e.Resource], key[e.Resource] = name, e.ResourceKey
					if newest[e.Resource]++; newest[e.Resource] != e.Version {
						t.Fatalf("resource %d: version %d where %d follows", e.Resource, e.Version, newest[e.Resource])
					}
				}
			}
			whole := 0
			for _, n := range newest {
				if n == uint32(max(1, versions)) {
					whole++
				}
			}
			if open := len(newest) - whole; open > 3*blockEvents {
				t.Errorf("%d of %d resources have fewer than %d versions", open, len(newest), versions)
			}
			if int(s.resources) > len(newest)+3*blockEvents {
				t.Errorf("%d resource numbers for %d resources", s.resources, len(newest))
			}
			if len(books.events) != in.Events {
				t.Errorf("%d events in the books", len(books.events))
			}
		})
	}
}

func TestVersionsOfAResourceAreSpread(t *testing.T) {
	in := traffic(40_000)
	in.Mix, in.Inject = in.Mix[:1], Inject{}
	_, _, plans := planAll(t, in)
	last := map[uint32]int{}
	gaps := map[int]bool{}
	for k, p := range plans {
		r := p.slot.events[0].Resource
		if before, ok := last[r]; ok {
			if gap := k - before; gap > blockEvents {
				t.Fatalf("%d events between two versions of %d", gap, r)
			}
			gaps[k-before] = true
		}
		last[r] = k
	}
	if len(gaps) < 100 {
		t.Errorf("only %d different distances between versions, want an irregular order", len(gaps))
	}
}

func TestStreamMarksLatest(t *testing.T) {
	in := traffic(10_000)
	in.Latest = []string{"acme/thing/updated"}
	in.Inject.Poison, in.Inject.PoisonItems = 0.5, 1
	_, books, _ := planAll(t, in)
	latest := 0
	for _, e := range books.events {
		if e.Flags&ledger.Phantom != 0 {
			continue
		}
		is := e.Flags&ledger.Latest != 0
		if want := e.Provider == 0 && e.Version > 1; is != want {
			t.Fatalf("event %+v: latest %t, want %t", e, is, want)
		}
		if is {
			latest++
		}
		if is && e.Flags&ledger.Poison != 0 {
			t.Fatalf("event %+v is both", e)
		}
	}
	if latest == 0 {
		t.Error("no event is marked")
	}
}

// fingerprint is a hash over everything that a traffic sends; without ids, over everything but them.
func fingerprint(t *testing.T, in Traffic, ids bool) uint64 {
	_, _, plans := planAll(t, in)
	h := fnv.New64a()
	id := regexp.MustCompile(`acme_[0-9a-f]{16}|"r[0-9a-f]{16}"|X-Delivery:\[[0-9a-f]{16}\]|X-Signature:\[[0-9a-f]{64}\]`)
	for i := range plans {
		line := show(&plans[i], midnight)
		if !ids {
			line = id.ReplaceAllString(line, "")
		}
		_, _ = fmt.Fprint(h, line)
	}
	return h.Sum64()
}

func TestStreamDependsOnSeedAlone(t *testing.T) {
	base, otherSeed, otherRun := traffic(1000), traffic(1000), traffic(1000)
	otherSeed.Seed++
	otherRun.RunID = "run-2"
	if a, b := fingerprint(t, base, true), fingerprint(t, base, true); a != b {
		t.Error("the same traffic differs from itself")
	}
	if a, b := fingerprint(t, base, false), fingerprint(t, otherSeed, false); a == b {
		t.Error("another seed sends the same")
	}
	if a, b := fingerprint(t, base, true), fingerprint(t, otherRun, true); a == b {
		t.Error("another run id sends the same ids")
	}
	if a, b := fingerprint(t, base, false), fingerprint(t, otherRun, false); a != b {
		t.Error("another run id changes more than ids")
	}
}

func TestOtherRunSharesNoID(t *testing.T) {
	one, two := traffic(5000), traffic(5000)
	two.RunID = "run-2"
	_, a, _ := planAll(t, one)
	_, b, _ := planAll(t, two)
	seen := map[string]bool{}
	for _, books := range []*record{a, b} {
		for _, e := range books.events {
			if seen[e.ID] {
				t.Fatalf("id %s comes twice", e.ID)
			}
			seen[e.ID] = true
		}
	}
}

func TestStreamOfOneEvent(t *testing.T) {
	in := traffic(1)
	in.Inject = Inject{Duplicates: 1, NewIDDuplicates: 1, OutOfOrder: 1, Forged: 1, Expired: 1, Malformed: 1, Poison: 1}
	in.Mix = in.Mix[:1]
	_, _, plans := planAll(t, in)
	var got []string
	for _, p := range plans {
		got = append(got, fmt.Sprint(p.class))
	}
	// Held back, it is sent when nothing newer will come, behind the forgeries that were due before.
	if diff := cmp.Diff("4 4 5 1 2 3", strings.Join(got, " ")); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
}

func TestStreamBounds(t *testing.T) {
	s, books, _ := planAll(t, traffic(50_000))
	if s.ahead.n != 0 || s.past.n != lookAhead || cap(s.out) > 64 {
		t.Errorf("ahead %d, past %d, out %d", s.ahead.n, s.past.n, cap(s.out))
	}
	if len(books.events) < 50_000 {
		t.Errorf("%d events", len(books.events))
	}
}

func BenchmarkStream(b *testing.B) {
	in := traffic(maxEvents)
	s, err := newStream(&in, discard{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.advance()
	}
}

// discard is a Books that keeps nothing.
type discard struct{}

func (discard) Event(ledger.Event) {}

func (discard) Delivery(ledger.Delivery) {}

func (discard) Attempt(ledger.Attempt) {}
