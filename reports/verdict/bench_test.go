package verdict

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"floodproof/reports/ledger"
)

// bigLedger is a plausible day of n events: 2 % duplicates, 3 % retries, effects 20 ms after the ack, five providers.
func bigLedger(b *testing.B, n uint32) []byte {
	b.Helper()
	h := ledger.Header{Steps: []string{""}, Expect: ledger.Expect{Steps: 1, Delivered: true}, Segments: []ledger.Segment{{Name: "day", Scale: 20, Gated: true}}}
	h.Expect.Latency = []ledger.LatencyLimit{{Of: "ack", Percentile: 99, Limit: time.Second}, {Of: "effect", Percentile: 99, Limit: time.Second}}
	for i := range 5 {
		h.Providers = append(h.Providers, ledger.Provider{Name: fmt.Sprint("provider-", i), Timeout: 10 * time.Second})
	}
	var out bytes.Buffer
	w, err := ledger.Create(&out, h)
	if err != nil {
		b.Fatal(err)
	}
	number := uint32(0)
	send := func(event uint32, class ledger.Class, due time.Duration, tries uint16) {
		w.Delivery(ledger.Delivery{Number: number, Class: class, Provider: uint8(event % 5), First: event, Count: 1})
		for try := uint16(1); try <= tries; try++ {
			a := ledger.Attempt{Delivery: number, Try: try, Due: due, Start: due + 80*time.Microsecond, Done: due + time.Duration(1000+event%5000)*time.Microsecond, Status: 200, Result: ledger.OK, Then: ledger.Settled}
			if try < tries {
				a.Status, a.Result, a.Then = 503, ledger.Refused, ledger.Retry
			}
			w.Attempt(a)
			due += 100 * time.Millisecond
		}
		number++
	}
	for i := range n {
		due := time.Duration(i) * 500 * time.Microsecond
		w.Event(ledger.Event{Number: i, ID: fmt.Sprintf("evt_1S%024x", uint64(i)*0x9E3779B97F4A7C15), Provider: uint8(i % 5), Resource: i / 3, Version: i % 3})
		tries := uint16(1)
		if i%33 == 0 {
			tries = 2
		}
		send(i, ledger.Genuine, due, tries)
		if i%50 == 0 {
			send(i, ledger.DuplicateSameID, due+time.Millisecond, 1)
			w.Call(ledger.Call{At: due + 30*time.Millisecond, Event: i, Outcome: ledger.Replayed, Fault: ledger.None})
		}
		w.Call(ledger.Call{At: due + time.Duration(tries)*120*time.Millisecond, Event: i, Outcome: ledger.Took, Fault: ledger.None})
	}
	for i := range uint32(20) {
		f := ledger.Fault{At: time.Duration(i) * 20 * time.Second, Number: i, Step: uint8(i % 4), Side: ledger.Worker + ledger.Side(i%4)*2, Phase: ledger.Begin, Name: "fault", Target: "x"}
		w.Fault(f)
		f.At, f.Phase = f.At+2*time.Second, ledger.Heal
		w.Fault(f)
	}
	if err := w.Close(ledger.End{At: 600 * time.Second, LoadEnd: 500 * time.Second, Drain: ledger.Drained}); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// BenchmarkJudge judges a million events: the time of `floodproof judge` after the largest run of `make bench`.
func BenchmarkJudge(b *testing.B) {
	const events = 1_000_000
	data := bigLedger(b, events)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		v, err := Judge(bytes.NewReader(data), int64(len(data)))
		if err != nil || v.Counts.Applied != events || v.Outcome != Pass {
			b.Fatal(v.Outcome, err, v.Counts, v.Findings)
		}
	}
	b.ReportMetric(float64(len(data))/events, "B/event")
}

// BenchmarkHistory measures what the history of a million events holds in memory.
func BenchmarkHistory(b *testing.B) {
	data := bigLedger(b, 1_000_000)
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		h, err := fold(bytes.NewReader(data))
		if err != nil {
			b.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-held")
		runtime.KeepAlive(h)
	}
}
