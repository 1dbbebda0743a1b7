package crosscheck

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	lib "github.com/tsenart/vegeta/v12/lib"
)

// vegetaRound lets vegeta attack once. An attacker works for a single attack, so that each round has its own.
func vegetaRound(ctx context.Context, s *source, number int) (*round, error) {
	wire := newVegetaWire(s.Slots)
	defer wire.transport.CloseIdleConnections()
	attacker := lib.NewAttacker(
		lib.Workers(min(lib.DefaultWorkers, uint64(s.Slots))), lib.MaxWorkers(uint64(s.Slots)),
		lib.MaxBody(0), // It keeps the bodies of all answers otherwise.
		// Last: the options before work on the client that this one replaces.
		lib.Client(&http.Client{
			Transport: wire, Timeout: s.provider.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
	)
	defer context.AfterFunc(ctx, func() { attacker.Stop() })()
	var next atomic.Uint64
	targeter := func(t *lib.Target) error {
		t.Method, t.URL = http.MethodPost, s.URL
		t.Header, t.Body = s.request(uint64(number), next.Add(1)-1)
		return nil
	}
	r := newRound()
	began := time.Now() // microseconds before the attacker's own begin, which it does not tell
	for result := range attacker.Attack(targeter, pacer{lib.ConstantPacer{Freq: s.Rate, Per: time.Second}, uint64(s.count)}, 0, "") {
		r.vegeta(s, result, result.Timestamp.Sub(began))
	}
	r.Unconnected = int(wire.unconnected.Load())
	r.Unanswered -= r.Unconnected
	r.Busiest = int(wire.busiest.Load())
	return r, ctx.Err()
}

// vegeta counts one of vegeta's results. With a constant pacer, the due time is in the sequence number: the first request is due after one gap.
func (r *round) vegeta(s *source, result *lib.Result, start time.Duration) {
	r.sent(start)
	if result.Code == 0 {
		r.Unanswered++
	} else {
		r.answered(int(result.Code), s.provider.Success(int(result.Code)))
	}
	due := s.At(int(result.Seq))
	r.Own.add(result.Latency)
	r.Due.add(start + result.Latency - due)
	r.Late.add(start - due)
}

// pacer is vegeta's constant pacer for an exact number of requests. The duration of an attack does not give one: it depends on when the last tick is looked at.
type pacer struct {
	lib.ConstantPacer
	count uint64
}

// Pace implements lib.Pacer.
func (p pacer) Pace(elapsed time.Duration, hits uint64) (time.Duration, bool) {
	if hits >= p.count {
		return 0, true
	}
	return p.ConstantPacer.Pace(elapsed, hits)
}

// vegetaWire is vegeta's transport, with net/http's own below: no proxy, no bound to the address 0.0.0.0, which runs out of ports
// (https://github.com/tsenart/vegeta/issues/583) and reaches no IPv6 address.
type vegetaWire struct {
	transport     *http.Transport
	busy, busiest atomic.Int64
	unconnected   atomic.Int64
}

func newVegetaWire(slots int) *vegetaWire {
	return &vegetaWire{transport: &http.Transport{
		DialContext: (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext, MaxIdleConns: slots, MaxIdleConnsPerHost: slots, DisableCompression: true,
	}}
}

// RoundTrip implements http.RoundTripper. It takes away the header by which vegeta numbers its requests, since no provider sends one.
func (w *vegetaWire) RoundTrip(req *http.Request) (*http.Response, error) {
	delete(req.Header, "X-Vegeta-Seq") // made by vegeta for this request alone
	busy := w.busy.Add(1)
	for most := w.busiest.Load(); busy > most && !w.busiest.CompareAndSwap(most, busy); most = w.busiest.Load() {
	}
	resp, err := w.transport.RoundTrip(req)
	w.busy.Add(-1)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		w.unconnected.Add(1)
	}
	return resp, err
}
