package perf

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	lib "github.com/tsenart/vegeta/v12/lib"

	"floodproof/loadgen"
	"floodproof/loadgen/provider"
)

// load is one run of a generator: so many requests of a provider at fixed gaps, 0 for as fast as it can, with so many in flight at most.
type load struct {
	from     *provider.Provider
	to       string
	gap      time.Duration
	count    int
	inFlight int
	// noCatchUp leaves out what finds no free slot, of ours.
	noCatchUp bool
	// transport is ours, nil for package wire with keep-alive.
	transport http.RoundTripper
}

const secret = "whsec_0123456789abcdef"

// ours runs floodproof's generator.
func ours(ctx context.Context, l load) (figures, error) {
	t := &tally{late: make([]time.Duration, 0, l.count), latencies: make([]time.Duration, 0, l.count)}
	if l.transport == nil {
		l.transport = new(loadgen.WireTransport)
	}
	g := generator(l)
	g.Books = t
	var f figures
	m := newMeter()
	err := g.Run(ctx)
	m.done(&f, l.count)
	f.failed, f.blocked, f.local = t.failed, t.blocked, int(g.Progress().Local)
	f.lateP99, f.p50, f.p99 = percentile(t.late, 99), percentile(t.latencies, 50), percentile(t.latencies, 99)
	return f, err
}

// generator makes floodproof's generator, but for its books.
func generator(l load) *loadgen.Generator {
	return &loadgen.Generator{
		Traffic: loadgen.Traffic{
			Seed: 1, RunID: "perf", Events: l.count, Day: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC), Schedule: every(l.gap),
			Mix: []loadgen.Share{{Provider: l.from, Weight: 1, Secrets: []string{secret}, URL: l.to}},
		},
		Segments:    []loadgen.Segment{{Name: "all", Until: every(l.gap).At(l.count) + 1, Scale: 1}},
		MaxInFlight: l.inFlight, Transport: l.transport, NoCatchUp: l.noCatchUp,
	}
}

// vegetas runs vegeta with the same requests.
func vegetas(ctx context.Context, l load) (figures, error) {
	attacker := lib.NewAttacker(lib.MaxWorkers(uint64(l.inFlight)), lib.Workers(uint64(l.inFlight)), lib.Timeout(l.from.Timeout), lib.MaxBody(0))
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	var next atomic.Uint64
	targeter := func(t *lib.Target) error {
		n := next.Add(1)
		req := provider.Request{Header: make(http.Header, 8)}
		e := provider.Event{Number: uint32(n), Key: n, Draw: n, ResourceKey: n, ResourceDraw: n, Version: 1, At: time.Now()}
		l.from.Render(&req, provider.Delivery{Key: n, Events: []provider.Event{e}, Attempt: 1})
		l.from.Sign(&req, provider.Signing{Secrets: []string{secret}, URL: l.to, Now: time.Now()})
		t.Method, t.URL, t.Header, t.Body = http.MethodPost, l.to, req.Header, req.Body
		return nil
	}
	pace := counted{count: uint64(l.count)}
	if l.gap > 0 {
		pace.ConstantPacer = lib.ConstantPacer{Freq: int(time.Second / l.gap), Per: time.Second}
	}
	t := &tally{late: make([]time.Duration, 0, l.count), latencies: make([]time.Duration, 0, l.count)}
	var f figures
	m := newMeter()
	for r := range attacker.Attack(targeter, pace, 0, "") {
		if r.Code != http.StatusOK {
			t.failed++
		}
		due := every(l.gap).At(int(r.Seq))
		t.late = append(t.late, r.Timestamp.Sub(m.start)-due)
		t.latencies = append(t.latencies, r.End().Sub(m.start)-due)
	}
	m.done(&f, l.count)
	f.failed = t.failed
	f.lateP99, f.p50, f.p99 = percentile(t.late, 99), percentile(t.latencies, 50), percentile(t.latencies, 99)
	return f, ctx.Err()
}

// counted is vegeta's constant pacer for an exact number of requests; the zero rate is as fast as possible.
type counted struct {
	lib.ConstantPacer
	count uint64
}

// Pace implements lib.Pacer.
func (c counted) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if hits >= c.count {
		return 0, true
	}
	return c.ConstantPacer.Pace(elapsed, hits)
}
