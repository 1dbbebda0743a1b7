package perf

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reports/ledger"
)

// instant is a transport without a wire. It paces the generator too: everything is due at once, and what is due goes out as soon as half of the slots are free, so
// that neither a clock nor a backlog is measured.
type instant struct {
	sent int64
	done atomic.Int64
}

func (t *instant) RoundTrip(req *http.Request) (*http.Response, error) {
	defer t.done.Add(1)
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	if err := req.Body.Close(); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// sleep is the generator's.
func (t *instant) sleep(context.Context, time.Time) {
	for t.sent++; t.sent-t.done.Load() > slots/2; {
		runtime.Gosched()
	}
}

// forgetful is a Books that keeps nothing, as if the ledger were elsewhere, and looks at the memory now and then.
type forgetful struct {
	attempts int
	most     uint64
}

func (*forgetful) Event(ledger.Event)       {}
func (*forgetful) Delivery(ledger.Delivery) {}
func (f *forgetful) Attempt(ledger.Attempt) {
	if f.attempts++; f.attempts%100_000 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		f.most = max(f.most, m.Sys-m.HeapReleased)
	}
}

// BenchmarkMemory reports the most memory that a generator holds in a run of one million requests and of ten: the same, since it keeps nothing of a
// delivery that is over (https://github.com/grafana/k6/issues/4670, https://github.com/hatoo/oha/issues/475).
func BenchmarkMemory(b *testing.B) {
	for _, millions := range []int{1, 10} {
		b.Run(fmt.Sprintf("requests=%dM", millions), func(b *testing.B) {
			for range b.N {
				books := new(forgetful)
				to := new(instant)
				g := generator(load{from: acme(), to: "http://receiver.invalid/", count: millions * 1_000_000, inFlight: slots, transport: to})
				g.Books, g.Sleep = books, to.sleep
				if err := g.Run(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(books.most)/1e6, "MB-most")
				b.ReportMetric(float64(g.Progress().Blocked), "blocked")
			}
			b.ReportMetric(float64(millions)*1e6*float64(b.N)/b.Elapsed().Seconds(), "req/s")
		})
	}
}
