package perf

import (
	"cmp"
	"runtime"
	"slices"
	"testing"
	"time"
)

const (
	// tooLate is the p99 of lateness at which a generator does not hold a rate.
	tooLate = 10 * time.Millisecond
	// steps is how often a search halves its range, tries how often a rate is tried: what else the machine does can only make it look worse.
	steps, tries = 5, 3
)

// holds reports whether a generator held a rate. What a full server holds back counts too: nobody can send then.
func (f figures) holds() bool {
	return f.lateP99 < tooLate && f.failed == 0 && f.blocked < f.requests/100
}

// attempt runs a generator at a rate for a second until it holds it, as often as allowed, and returns its least late run.
func attempt(b *testing.B, side side, to string, rate float64) figures {
	b.Helper()
	var all []figures
	for range tries {
		f, err := side.run(b.Context(), load{from: acme(), to: to, gap: time.Duration(float64(time.Second) / rate), count: int(rate), inFlight: slots})
		if err != nil {
			b.Fatal(err)
		}
		if all = append(all, f); f.holds() {
			return f
		}
	}
	return slices.MinFunc(all, func(a, b figures) int { return cmp.Compare(a.lateP99, b.lateP99) })
}

// BenchmarkOpen finds the highest rate at which each can send on one processor, 256 requests in flight at most, so that its p99 of lateness is below 10 ms, and then
// the lateness at 90 % of that. Raw sockets, as fast as they can, are the limit.
func BenchmarkOpen(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	s := startServer(b, atOnce, 1)
	defer s.stop(b)
	var highest, cpu, late [2][]float64
	var limit []float64
	for range b.N {
		f, err := raws(b.Context(), load{from: acme(), to: s.url, count: 60_000, inFlight: 64})
		if err != nil {
			b.Fatal(err)
		}
		limit = append(limit, f.perSecond)
		low, high := [2]float64{}, [2]float64{}
		for i, side := range sides() {
			f, err := side.run(b.Context(), load{from: acme(), to: s.url, count: 20_000, inFlight: slots})
			if err != nil {
				b.Fatal(err)
			}
			high[i] = 1.3 * f.perSecond
		}
		for range steps {
			for i, side := range sides() {
				if rate := (low[i] + high[i]) / 2; attempt(b, side, s.url, rate).holds() {
					low[i] = rate
				} else {
					high[i] = rate
				}
			}
		}
		for i, side := range sides() {
			f := attempt(b, side, s.url, max(1, 0.9*low[i]))
			highest[i] = append(highest[i], low[i])
			cpu[i] = append(cpu[i], float64(f.cpu)/float64(time.Microsecond))
			late[i] = append(late[i], float64(f.lateP99)/float64(time.Millisecond))
		}
	}
	report(b, "req/s", highest)
	report(b, "cpu-µs/req", cpu)
	report(b, "ms-late-p99-at-90%", late)
	b.ReportMetric(median(highest[0])/median(highest[1]), "x-vegeta")
	b.ReportMetric(median(limit), "raw-req/s")
	b.ReportMetric(median(highest[0])/median(limit), "x-raw")
}
