package official_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

const (
	// genuine is how many deliveries of each provider its library has to accept.
	genuine = 2000
	// forged is how many of each kind it has to refuse.
	forged = 500
)

// TestAccepted: what a provider sends, its library accepts, and reads the event out of it that was meant.
func TestAccepted(t *testing.T) {
	for _, l := range libraries() {
		t.Run(l.name, func(t *testing.T) {
			at(t, func(t *testing.T) { checkAccepted(t, l) })
		})
	}
}

func checkAccepted(t *testing.T, l library) {
	p := find(t, l.provider)
	secret := secretOf(p, 1)
	types := map[string]bool{}
	for n := range uint64(genuine) {
		r := render(p, n)
		sign(p, r, now, secret)
		if err := l.verify(verification(p, secret), r); err != nil {
			t.Fatalf("delivery %d is refused: %v\n%v\n%s", n, err, r.Header, r.Body)
		}
		var want []fact
		for _, e := range deliveryOf(p, n).Events {
			want = append(want, fact{p.ID(e), p.Type(e)})
			types[p.Type(e)] = true
		}
		if l.read == nil {
			continue
		}
		if got, err := l.read(r); err != nil || !slices.Equal(got, want) {
			t.Fatalf("delivery %d is read as %v, error %v; want %v\n%s", n, got, err, want, r.Body)
		}
	}
	if len(types) < l.types {
		t.Errorf("%d types of event, want %d: %v", len(types), l.types, slices.Sorted(maps.Keys(types)))
	}
}

// forgery is a way to make a delivery that its provider did not send.
type forgery struct {
	name string
	// forge signs a rendered request, or not.
	forge func(p *provider.Provider, r *request, secret string)
}

// beyond is how far outside the tolerance the load generator dates an expired signature or one from the future.
const beyond = 3 * time.Minute

const fromTheFuture = "from the future"

// forgeries are those of the load generator.
func forgeries() []forgery {
	return []forgery{
		{"wrong key", func(p *provider.Provider, r *request, _ string) { sign(p, r, now, secretOf(p, 2)) }},
		{"altered after signing", func(p *provider.Provider, r *request, secret string) {
			sign(p, r, now, secret)
			p.Tamper(r.Body)
		}},
		{"unsigned", func(*provider.Provider, *request, string) {}},
		{"expired", func(p *provider.Provider, r *request, secret string) {
			sign(p, r, now.Add(-p.Tolerance-beyond), secret)
		}},
		{fromTheFuture, func(p *provider.Provider, r *request, secret string) {
			sign(p, r, now.Add(p.FutureTolerance+beyond), secret)
		}},
	}
}

// TestForgeriesRefused: what is not signed by the provider, its library refuses.
func TestForgeriesRefused(t *testing.T) {
	for _, l := range libraries() {
		p := find(t, l.provider)
		for _, f := range forgeries() {
			if f.name == "expired" && p.Tolerance == 0 || f.name == fromTheFuture && p.FutureTolerance == 0 {
				continue // TestTolerance: its library does not refuse it.
			}
			t.Run(l.name+"/"+f.name, func(t *testing.T) {
				at(t, func(t *testing.T) {
					secret := secretOf(p, 1)
					for n := range uint64(forged) {
						r := render(p, n)
						f.forge(p, r, secret)
						if l.verify(verification(p, secret), r) == nil {
							t.Fatalf("delivery %d is accepted\n%v\n%s", n, r.Header, r.Body)
						}
					}
				})
			})
		}
	}
}

// TestTolerance: a library refuses signatures from the age on that the provider is said to tolerate, and those that say nothing of age are accepted at any. So
// it is with dates ahead.
func TestTolerance(t *testing.T) {
	for _, l := range libraries() {
		p := find(t, l.provider)
		tests := []struct {
			name    string
			age     time.Duration
			refused bool
		}{
			{"as old as tolerated", p.Tolerance, false},
			{"a second older", p.Tolerance + time.Second, p.Tolerance > 0},
			{"a month old", 30 * 24 * time.Hour, p.Tolerance > 0},
			{"dated as far ahead as tolerated", -p.FutureTolerance, false},
			{"dated further ahead", -p.FutureTolerance - beyond, p.FutureTolerance > 0 || l.prescient},
		}
		for _, tt := range tests {
			t.Run(l.name+"/"+tt.name, func(t *testing.T) {
				at(t, func(t *testing.T) {
					r := render(p, 1)
					secret := secretOf(p, 1)
					sign(p, r, now.Add(-tt.age), secret)
					if err := l.verify(verification(p, secret), r); (err != nil) != tt.refused {
						t.Errorf("signed %v ago: error %v, refused should be %t", tt.age, err, tt.refused)
					}
				})
			})
		}
	}
}

// TestRotation: while a secret is being replaced a request carries a signature of each, and receivers accept it that know the old secret or the new one.
func TestRotation(t *testing.T) {
	for _, l := range libraries() {
		if !l.rotates {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			at(t, func(t *testing.T) { checkRotation(t, l) })
		})
	}
}

func checkRotation(t *testing.T, l library) {
	p := find(t, l.provider)
	current, old, other := secretOf(p, 1), secretOf(p, 2), secretOf(p, 3)
	for n := range uint64(forged) {
		r := render(p, n)
		sign(p, r, now, current, old)
		for name, secret := range map[string]string{"current": current, "old": old} {
			if err := l.verify(verification(p, secret), r); !errors.Is(err, l.misread) {
				t.Fatalf("delivery %d under the %s secret: error %v, want %v\n%v", n, name, err, l.misread, r.Header)
			}
		}
		if l.verify(verification(p, other), r) == nil {
			t.Fatalf("delivery %d is accepted under a secret that did not sign it\n%v", n, r.Header)
		}
	}
}
