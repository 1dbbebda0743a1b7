package provider_test

import (
	"net/http"
	"testing"

	"floodproof/loadgen/provider"
)

// TestAnotherRunDiffersInIDsOnly renders the same facts under the ids of two runs: what they are, and how large, must not change.
func TestAnotherRunDiffersInIDsOnly(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(400) {
			one := eventOf(n, uint32(n%4+1))
			other := one
			other.Key, other.ResourceKey = scatter(one.Key), scatter(one.ResourceKey)
			if p.ID(one) == p.ID(other) {
				t.Fatalf("%s: both runs have the event %s", p.Name, p.ID(one))
			}
			if got, want := p.Type(other), p.Type(one); got != want {
				t.Fatalf("%s: event %d is %q in the other run, want %q", p.Name, n, got, want)
			}
			var a, b provider.Request
			a.Header, b.Header = http.Header{}, http.Header{}
			p.Render(&a, provider.Delivery{Key: 1, Attempt: 1, Events: []provider.Event{one}})
			p.Render(&b, provider.Delivery{Key: 1, Attempt: 1, Events: []provider.Event{other}})
			// Ids in decimal differ in length, and so do the names of GitHub's repositories, which are ids and stand in dozens of URLs.
			if d := len(a.Body) - len(b.Body); max(d, -d) > 48+len(a.Body)/10 {
				t.Fatalf("%s: event %d (%s) has %d bytes in one run and %d in the other", p.Name, n, p.Type(one), len(a.Body), len(b.Body))
			}
		}
	}
}
