package verdict

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// longest is the longest latency that is told apart; longer ones count as this long, and the report says how many.
	longest = int64(2 * time.Hour / time.Microsecond)
	// digits are the significant decimal digits that a histogram keeps.
	digits = 3
)

// recorder collects latencies in microseconds. No value is ever dropped: one out of range is recorded at the end of the range and
// counted in clamped. The zero value is empty and ready; its histogram, 200 kB, comes with the first sample.
type recorder struct {
	hist    *hdrhistogram.Histogram
	max     int64
	clamped int64
	excused int64
}

func (r *recorder) histogram() *hdrhistogram.Histogram {
	if r.hist == nil {
		r.hist = hdrhistogram.New(1, longest, digits)
	}
	return r.hist
}

func (r *recorder) record(us int64) {
	if us < 0 || us > longest {
		r.clamped++
		us = min(max(us, 0), longest)
	}
	if err := r.histogram().RecordValue(us); err != nil {
		r.clamped++ // the range above makes it impossible; a count that falls short of the samples would show it
		return
	}
	r.max = max(r.max, us)
}

// merge adds what another recorder holds.
func (r *recorder) merge(from *recorder) {
	r.clamped += from.clamped
	if from.hist != nil {
		r.clamped += r.histogram().Merge(from.hist)
	}
	r.max = max(r.max, from.max)
	r.excused += from.excused
}

func (r *recorder) count() int64 {
	if r.hist == nil {
		return 0
	}
	return r.hist.TotalCount()
}

// percentile is the smallest recorded value that p percent of the samples do not exceed, within the histogram's three digits and never too small by
// more than that. There must be samples.
//
// Note: the histogram rounds the rank to the nearest sample, which for 60 samples makes the 99th percentile the 59th; a
// limit that holds for 99 percent needs the rank rounded up.
func (r *recorder) percentile(p float64) int64 {
	n := float64(r.count())
	rank := math.Ceil(p/100*n - 1e-6)
	return min(r.hist.ValueAtPercentile(100*rank/n), r.max)
}

// latency is the recorder as the report shows it: without samples there are no percentiles.
func (r *recorder) latency() Latency {
	l := Latency{Count: r.count(), Excused: r.excused}
	if l.Count == 0 {
		return l
	}
	at := func(p float64) *float64 { return new(millis(r.percentile(p))) }
	l.P50, l.P90, l.P99, l.P999, l.Max = at(50), at(90), at(99), at(99.9), new(millis(r.max))
	return l
}
