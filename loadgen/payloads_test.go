package loadgen

import (
	"fmt"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestPayloadsOfAttempts: an event is visited once for each of its attempts if these can be told apart, and once if they cannot.
func TestPayloadsOfAttempts(t *testing.T) {
	counting := acme()
	render := counting.Render
	counting.Render = func(r *provider.Request, d provider.Delivery) {
		render(r, d)
		r.Body = fmt.Appendf(r.Body, "%d", d.Attempt)
	}
	for name, tt := range map[string]struct {
		from *provider.Provider
		want int
	}{"same bytes": {acme(), 1}, "counted attempts": {counting, 1 + len(counting.Delays)}} {
		whole := *tt.from
		whole.PayloadOf = func(body []byte, _ int) []byte { return body }
		traffic := Traffic{
			Seed: 1, RunID: "x", Events: 20, Day: midnight, Schedule: evenly(time.Minute), VersionsPerResource: 1,
			Mix: []Share{{Provider: &whole, Weight: 1, Secrets: []string{"secret"}, URL: "http://127.0.0.1/"}},
		}
		visits, different := 0, map[string]bool{}
		err := traffic.Payloads(func(n uint32) bool { return n == 7 }, func(n uint32, payload []byte) {
			if n != 7 {
				t.Errorf("%s: event %d was not asked for", name, n)
			}
			visits++
			different[string(payload)] = true
		})
		if err != nil || visits != tt.want || len(different) != tt.want {
			t.Errorf("%s: %d visits with %d payloads, error %v; want %d", name, visits, len(different), err, tt.want)
		}
	}
}
