package loadgen

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
)

func TestMash(t *testing.T) {
	for _, tt := range []struct {
		gap   time.Duration
		share float64
	}{
		{10 * time.Second, 0.05}, // events are rarer than the updates of a row
		{time.Millisecond, 0.3},  // and much more frequent
		{time.Second, 1},
	} {
		t.Run(fmt.Sprint(tt.gap, " ", tt.share), func(t *testing.T) { testMash(t, tt.gap, tt.share) })
	}
}

func testMash(t *testing.T, gap time.Duration, share float64) {
	in := traffic(40_000)
	in.Schedule, in.Inject, in.Mash = evenly(gap), Inject{}, Mash{Share: share, Updates: 8, Within: 5 * time.Second}
	_, books, plans := planAll(t, in)
	type row struct {
		due      []time.Duration
		provider string
	}
	rows := map[uint32]*row{}
	single := map[uint32]bool{}
	for _, p := range plans {
		if p.slot.versions != 8 {
			continue
		}
		e := p.slot.events[0]
		r := rows[e.Resource]
		if r == nil {
			r = &row{provider: p.slot.role.Provider.Name}
			rows[e.Resource] = r
		}
		single[e.Number] = true
		if len(p.slot.events) != 1 || int(e.Version) != len(r.due)+1 || p.slot.role.Provider.Name != r.provider {
			t.Fatalf("plan %d carries %d events, version %d of %d after %d, of %s", p.seq, len(p.slot.events), e.Version, e.Resource, len(r.due), r.provider)
		}
		if want := midnight.Add(p.day); !e.At.Equal(want) {
			t.Fatalf("event %d happened at %v, want %v, when it is due", e.Number, e.At, want)
		}
		r.due = append(r.due, p.day)
	}
	providers := map[string]bool{}
	last := in.Schedule.At(in.Events - 1)
	for resource, r := range rows {
		providers[r.provider] = true
		if len(r.due) != 8 {
			t.Errorf("resource %d has %d updates, want 8", resource, len(r.due))
		}
		for i := 1; i < len(r.due); i++ {
			if part := 5 * time.Second / 8; r.due[i] < r.due[i-1] || r.due[i] > last ||
				r.due[i] != last && (r.due[i] < r.due[0]+time.Duration(i)*part || r.due[i] > r.due[0]+time.Duration(i+1)*part) {
				t.Errorf("update %d of %d is due %v after the first", i, resource, r.due[i]-r.due[0])
			}
		}
	}
	// Rows are drawn, eight events at a time: four standard deviations.
	got, want := float64(len(single)), share*float64(in.Events)
	if room := 4 * math.Sqrt(8*want); math.Abs(got-want) > room || len(providers) != 3 {
		t.Errorf("%v events lie in rows of %v, want %v ± %.0f of all three providers", got, providers, want, room)
	}
	if len(books.events) != in.Events {
		t.Errorf("%d events, want %d", len(books.events), in.Events)
	}
}

// TestMashIsSeeded: the same seed gives the same rows, and everything else that is injected still works around them.
func TestMashIsSeeded(t *testing.T) {
	list := func(seed uint64) (got []string) {
		in := traffic(3000)
		in.Seed, in.Mash = seed, Mash{Share: 0.2, Updates: 5, Within: 2 * time.Second}
		in.Inject.Stale, in.Inject.ConcurrentDuplicates, in.Inject.CutBody = 0.1, 0.1, 0.1
		s, _, plans := planAll(t, in)
		genuine := map[uint32]int{}
		for _, p := range plans {
			got = append(got, show(&p, midnight))
			if p.class == ledger.Genuine {
				for _, e := range p.slot.events {
					genuine[e.Number]++
				}
			}
		}
		for n := range uint32(3000) {
			if genuine[n] != 1 {
				t.Fatalf("event %d has %d genuine deliveries", n, genuine[n])
			}
		}
		if len(s.held) != 0 {
			t.Errorf("%d slots are still held", len(s.held))
		}
		return got
	}
	one, again, other := list(1), list(1), list(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Errorf("one seed, two days (-one +again):\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Error("two seeds, one day")
	}
}
