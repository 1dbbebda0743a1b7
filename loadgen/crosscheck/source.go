package crosscheck

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"floodproof/loadgen/provider"
)

// source makes the requests of both sides.
type source struct {
	Config
	provider *provider.Provider
	// gap is between two requests, in whole nanoseconds as vegeta counts them, count how many a round has.
	gap   time.Duration
	count int
}

// newSource prepares a checked configuration.
func newSource(c Config) *source {
	s := &source{Config: c, gap: time.Second / time.Duration(c.Rate)}
	s.count = max(1, int(c.For/s.gap))
	if c.Provider == nil {
		s.provider = plain(c.Body)
		s.Secrets = []string{"none"} // It signs nothing.
		return s
	}
	bare := provider.Override(c.Provider, provider.Overrides{Delays: []time.Duration{}, MaxBatch: 1, MeanBatch: 1})
	bare.Resend, bare.InOrder, bare.MaxInFlight, bare.LeavesOpen, bare.Resends = 0, false, 0, false, false
	bare.ConnectTimeout, bare.HTTP10 = 0, false
	s.provider = bare
	return s
}

// At implements loadgen.Schedule: when request n is due after the begin of the round. vegeta waits one gap before its first.
func (s *source) At(n int) time.Duration { return time.Duration(n+1) * s.gap }

// plainTimeout is how long a plain request may take: what vegeta allows if nobody says otherwise.
const plainTimeout = 30 * time.Second

// plain is a provider of unsigned JSON bodies of this length.
func plain(length int) *provider.Provider {
	const frame = len(`{"id":"crosscheck-0123456789abcdef","filler":""}`)
	filler := strings.Repeat("x", length-frame)
	return &provider.Provider{
		Name: "plain", Timeout: plainTimeout, SuccessMin: 200, SuccessMax: 299, MaxBatch: 1, MeanBatch: 1,
		ID: func(e provider.Event) string { return fmt.Sprintf("crosscheck-%016x", e.Key) },
		Render: func(r *provider.Request, d provider.Delivery) {
			r.Header["Content-Type"] = []string{"application/json"}
			var key uint64
			if len(d.Events) > 0 {
				key = d.Events[0].Key
			}
			r.Body = append(fmt.Appendf(r.Body, `{"id":"crosscheck-%016x","filler":"`, key), filler...)
			r.Body = append(r.Body, `"}`...)
		},
		Sign: func(*provider.Request, provider.Signing) {},
	}
}

// request makes and signs request n of one of vegeta's rounds. floodproof's generator makes its own.
func (s *source) request(round, n uint64) (http.Header, []byte) {
	bits := rand.NewPCG(s.Seed^round<<32, n)
	e := provider.Event{
		Number: uint32(n), Key: bits.Uint64(), Draw: bits.Uint64(), Resource: uint32(n), ResourceKey: bits.Uint64(), ResourceDraw: bits.Uint64(),
		Version: 1, At: time.Now(),
	}
	req := provider.Request{Header: make(http.Header, 8)}
	s.provider.Render(&req, provider.Delivery{Key: bits.Uint64(), Events: []provider.Event{e}, Attempt: 1})
	s.provider.Sign(&req, provider.Signing{Secrets: s.Secrets, URL: s.URL, Now: time.Now()})
	return req.Header, req.Body
}
