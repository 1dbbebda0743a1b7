package reports

import (
	"bufio"
	"fmt"
	"io"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Hgrm writes the distribution of the gated ack latencies in the HdrHistogram percentile format, in milliseconds, as the plotter at
// hdrhistogram.github.io/HdrHistogram/plotFiles.html loads it.
//
// Note: hdrhistogram-go can write the format too (Histogram.PercentilesPrint), but it shows an empty histogram as NaN.
func Hgrm(w io.Writer, r *Report) error {
	const usPerMS, ticksPerHalf = 1000, 5
	h := r.Ack
	b := bufio.NewWriter(w)
	_, _ = fmt.Fprintf(b, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	for _, q := range quantiles(h, ticksPerHalf) {
		inverse := "           inf"
		if q.quantile < 1 {
			inverse = fmt.Sprintf("%14.2f", 1/(1-q.quantile))
		}
		_, _ = fmt.Fprintf(b, "%12.3f %2.12f %10d %s\n", float64(q.value)/usPerMS, q.quantile, q.count, inverse)
	}
	mean, dev, top := 0.0, 0.0, 0.0
	if h.TotalCount() > 0 {
		mean, dev, top = h.Mean()/usPerMS, h.StdDev()/usPerMS, float64(h.Max())/usPerMS
	}
	_, _ = fmt.Fprintf(b, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", mean, dev)
	_, _ = fmt.Fprintf(b, "#[Max     = %12.3f, Total count    = %12d]\n", top, h.TotalCount())
	_, _ = fmt.Fprintf(b, "#[Buckets = %12d, SubBuckets     = %12d]\n", 1, 2048)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write latency histogram: %w", err)
	}
	return nil
}

// quantile is one point of a percentile curve: count samples, the share quantile of all, are at most value.
type quantile struct {
	quantile float64
	value    int64
	count    int64
}

// quantiles walks a distribution in steps that halve the distance to 1 every ticks points. It is empty for an empty one, and ends at
// quantile 1 otherwise.
func quantiles(h *hdrhistogram.Histogram, ticks int) []quantile {
	total := h.TotalCount()
	if total == 0 {
		return nil
	}
	var out []quantile
	target, count, top := 0.0, int64(0), h.Max()
	for _, b := range h.Distribution() {
		if b.Count == 0 {
			continue
		}
		count += b.Count
		reached := float64(count) / float64(total)
		if reached < target {
			continue
		}
		// The last bucket's upper edge lies above every sample; the largest sample is what was seen.
		out = append(out, quantile{reached, min(b.To, top), count})
		for target <= reached && reached < 1 {
			half := math.Floor(math.Log2(1/(1-target))) + 1
			target += 1 / (float64(ticks) * math.Pow(2, half))
		}
	}
	if last := &out[len(out)-1]; last.quantile < 1 {
		out = append(out, quantile{1, top, total})
	}
	return out
}
