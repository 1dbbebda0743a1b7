package provider_test

import (
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestOverrideNothing leaves everything as it is.
func TestOverrideNothing(t *testing.T) {
	for _, p := range provider.All() {
		q := provider.Override(p, provider.Overrides{})
		if q == p {
			t.Errorf("%s: not a copy", p.Name)
		}
		if q.Timeout != p.Timeout || len(q.Delays) != len(p.Delays) || q.Jitter != p.Jitter || q.MaxBatch != p.MaxBatch || q.MeanBatch != p.MeanBatch ||
			q.MaxInFlight != p.MaxInFlight || q.RetryAfter != p.RetryAfter || q.Disable.After != p.Disable.After || (q.Delay == nil) != (p.Delay == nil) {
			t.Errorf("%s: became %+v", p.Name, q)
		}
	}
}

func TestOverride(t *testing.T) {
	p := find(t, "stripe")
	delays := []time.Duration{time.Minute}
	jitter, yes := 0.5, true
	q := provider.Override(p, provider.Overrides{
		Timeout: time.Second, Delays: delays, Jitter: &jitter, MaxInFlight: 3, RetryAfter: &yes, Disable: &provider.Disable{Failures: 8}, MaxBatch: 9, MeanBatch: 4,
	})
	if q.Timeout != time.Second || q.TimeoutAssumed || q.Delays[0] != time.Minute || q.DelaysAssumed || q.Jitter != 0.5 || q.MaxInFlight != 3 || !q.RetryAfter || q.Disable.Failures != 8 {
		t.Errorf("overrides did not arrive: %+v", q)
	}
	if q.MaxBatch != 1 || q.BatchSize(1) != 1 {
		t.Errorf("stripe, which sends one event in each request, now sends %d", q.MaxBatch)
	}
	if delays[0] = time.Hour; q.Delays[0] != time.Minute {
		t.Error("the delays are the caller's")
	}
	if none := provider.Override(p, provider.Overrides{Delays: []time.Duration{}}); !none.OneShot() || p.OneShot() {
		t.Error("an empty list of delays does not mean that nothing is sent again")
	}
}

// TestOverrideQuota: a quota is replaced where there is one.
func TestOverrideQuota(t *testing.T) {
	if q := provider.Override(find(t, "slack"), provider.Overrides{Quota: 50}).Quota; q.Events != 50 || q.Window != time.Hour || q.Customer == nil {
		t.Errorf("slack's quota became %d in %v, want 50 an hour", q.Events, q.Window)
	}
	if q := provider.Override(find(t, "stripe"), provider.Overrides{Quota: 50}).Quota; q.Events != 0 {
		t.Errorf("stripe, which has no quota, has one of %d", q.Events)
	}
}

// TestOverrideBatches: sizes keep their bounds, every one of them occurs, and their mean is what was asked for.
func TestOverrideBatches(t *testing.T) {
	const draws = 60_000
	tests := []struct {
		largest    int
		mean, want float64
	}{{4, 2, 2}, {4, 3.5, 3.5}, {4, 2.5, 2.5}, {5, 0, 3}, {0, 4, 4}, {1, 0, 1}, {10, 1, 1}, {3, 3, 3}}
	for _, tt := range tests {
		p := provider.Override(find(t, "hubspot"), provider.Overrides{MaxBatch: tt.largest, MeanBatch: tt.mean})
		sum, seen := 0, map[int]bool{}
		for n := range uint64(draws) {
			size := p.BatchSize(scatter(n))
			if size < 1 || size > p.MaxBatch {
				t.Fatalf("batch of %d", size)
			}
			sum += size
			seen[size] = true
		}
		if mean := float64(sum) / draws; p.MeanBatch != tt.want || mean < tt.want*0.97 || mean > tt.want*1.03 {
			t.Errorf("largest %d, mean %v: mean %.3f, said to be %v, want %v", tt.largest, tt.mean, mean, p.MeanBatch, tt.want)
		}
		if even := tt.want > 1 && tt.want < float64(p.MaxBatch); even && len(seen) != p.MaxBatch {
			t.Errorf("largest %d, mean %v: only %d sizes", tt.largest, tt.mean, len(seen))
		}
	}
}
