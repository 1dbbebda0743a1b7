package loadgen

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// steady returns a generator whose day has one segment of so many events a second in real time.
func steady(perSecond int, slots int) *Generator {
	return &Generator{
		Traffic: plain(evenly(time.Second/time.Duration(perSecond)), 10*perSecond), Segments: []Segment{{Name: "rush", Until: 10 * time.Second, Scale: 1}},
		Books: discard{}, MaxInFlight: slots,
	}
}

func TestBudget(t *testing.T) {
	tests := []struct {
		name   string
		g      *Generator
		change func(*Generator)
		p99    time.Duration
		want   Budget
		err    string
	}{
		{name: "room for a stall of a second", g: steady(1000, 1000), p99: 100 * time.Millisecond,
			want: Budget{Segment: "rush", Peak: 1000, Slots: 1000, Needed: 100, Stall: time.Second}},
		{name: "a quarter of a second of the burst", g: steady(2000, 512), p99: 25 * time.Millisecond,
			want: Budget{Segment: "rush", Peak: 2000, Slots: 512, Needed: 50, Stall: 256 * time.Millisecond, Notes: []string{
				`a stall of 260ms at the peak of 2,000 requests/s in segment "rush" fills all 512 slots; what is due from then on waits and counts as blocked`}}},
		{name: "no limit", g: steady(100, 0), want: Budget{Segment: "rush", Peak: 100, Slots: 256, Stall: 2560 * time.Millisecond}},
		{name: "cannot be carried", g: steady(1000, 64), p99: 100 * time.Millisecond,
			err: `the peak of 1,000 requests/s in segment "rush" needs 100 slots if a request takes the limit of 100ms, and there are 64: allow at least 100`},
		{name: "what is injected counts", g: steady(1000, 2000), p99: time.Second,
			change: func(g *Generator) { g.Traffic.Inject = Inject{Duplicates: 0.25, Forged: 0.25} },
			want:   Budget{Segment: "rush", Peak: 1500, Slots: 2000, Needed: 1500, Stall: 2000 * time.Second / 1500}},
		{name: "a slow body holds its slot for the time-out", g: steady(100, 1000), p99: 100 * time.Millisecond,
			change: func(g *Generator) { g.Traffic.Inject.SlowBody = 0.5 },
			want:   Budget{Segment: "rush", Peak: 150, Slots: 1000, Needed: 15 + 250, Stall: 750 * time.Second / 150}},
		{name: "scales and batches", g: steady(100, 1000), p99: time.Second, change: func(g *Generator) {
			g.Segments = []Segment{{Name: "slow", Until: 5 * time.Second, Scale: 1}, {Name: "fast", From: 5 * time.Second, Until: 10 * time.Second, Scale: 10}}
			g.Traffic.Mix = []Share{share(bulk(), 1)}
			g.Traffic.Mix[0].Provider.MeanBatch = 5
		}, want: Budget{Segment: "fast", Peak: 200, Slots: 1000, Needed: 200, Stall: 5 * time.Second}},
		{name: "a provider's own limit", g: steady(1000, 1000), p99: 100 * time.Millisecond, change: func(g *Generator) { g.Traffic.Mix[0].Provider.MaxInFlight = 10 },
			want: Budget{Segment: "rush", Peak: 1000, Slots: 1000, Needed: 100, Stall: time.Second, Notes: []string{
				"acme has at most 10 requests under way: at its peak of 1,000 requests/s of 100ms each, deliveries wait for their turn and count as blocked"}}},
		{name: "not a generator", g: &Generator{}, err: "books: nil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.change != nil {
				tt.change(tt.g)
			}
			got, err := tt.g.Budget(tt.p99)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("budget (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBudgetSeesTheBurst: the peak is that of the burst's own seconds, in real time.
func TestBudgetSeesTheBurst(t *testing.T) {
	schedule, err := NewDiurnal(Diurnal{Events: 1_000_000, BurstAt: 9 * time.Hour, BurstFor: 5 * time.Minute, BurstTimes: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	g := &Generator{Traffic: plain(schedule, 1_000_000), Books: discard{}, MaxInFlight: 512, Segments: []Segment{
		{Name: "night", Until: 9 * time.Hour, Scale: 100},
		{Name: "busiest-hour", From: 9 * time.Hour, Until: 10 * time.Hour, Scale: 20},
		{Name: "rest", From: 10 * time.Hour, Until: 24 * time.Hour, Scale: 100},
	}}
	b, err := g.Budget(25 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// Ten times the mean of 11.57/s, twenty times as fast.
	if want := 2315.0; b.Segment != "busiest-hour" || b.Peak < want-5 || b.Peak > want+5 {
		t.Errorf("peak of %v in %s, want about %v in busiest-hour", b.Peak, b.Segment, want)
	}
	if want := 221 * time.Millisecond; (b.Stall - want).Abs() > 2*time.Millisecond {
		t.Errorf("a stall of %v fills the slots, want about %v", b.Stall, want)
	}
}
