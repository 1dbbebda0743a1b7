package queue_test

import (
	"testing"
	"time"

	"floodproof/reference/queue"
)

func TestReserve(t *testing.T) {
	limit := queue.Limit{Rate: 10, Burst: 3}
	var state int64
	now := time.Hour
	for i, tt := range []struct {
		pass time.Duration
		n    int
		want time.Duration
	}{
		{0, 1, 0}, {0, 2, 0}, {0, 1, 100 * time.Millisecond}, {0, 1, 200 * time.Millisecond},
		{200 * time.Millisecond, 1, 100 * time.Millisecond},
		{time.Hour, 3, 0}, {0, 5, 500 * time.Millisecond},
		{-time.Minute, 1, time.Minute + 600*time.Millisecond}, // a clock that is put back holds up for as long
	} {
		now += tt.pass
		var wait time.Duration
		if state, wait = limit.Reserve(state, int64(now), tt.n); wait != tt.want {
			t.Errorf("step %d: got a wait of %v, want %v", i, wait, tt.want)
		}
	}
}

func TestLimitCheck(t *testing.T) {
	for _, l := range []queue.Limit{{Rate: 1, Burst: 1}, {Rate: 1e9, Burst: 1 << 20}, {Rate: 1e-9, Burst: 1}} {
		if err := l.Check(); err != nil || l.Every() <= 0 {
			t.Errorf("%+v: got %v and a turn every %v", l, err, l.Every())
		}
	}
	for _, l := range []queue.Limit{{}, {Rate: 1}, {Burst: 1}, {Rate: -1, Burst: 1}, {Rate: 1e10, Burst: 1}} {
		if l.Check() == nil {
			t.Errorf("%+v is taken", l)
		}
	}
}

func TestLimitString(t *testing.T) {
	for _, tt := range []struct {
		limit queue.Limit
		want  string
	}{
		{queue.Limit{Rate: 40, Burst: 1}, "40/s"}, {queue.Limit{Rate: 2.5, Burst: 10}, "2.5/s, 10 at once"}, {queue.Limit{Rate: 0.5, Burst: 1}, "30/min"},
		{queue.Limit{Rate: 1000.0 / 3600, Burst: 1}, "16.6667/min"}, {queue.Limit{Rate: 5.0 / 3600, Burst: 1}, "5/h"},
	} {
		if got := tt.limit.String(); got != tt.want {
			t.Errorf("%v a second, burst %d: got %q, want %q", tt.limit.Rate, tt.limit.Burst, got, tt.want)
		}
	}
}
