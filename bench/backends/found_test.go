package backends

import (
	"context"
	"errors"
	"os/exec"
	"testing"

	"floodproof/reference/queue/server"
)

func TestFind(t *testing.T) {
	self := func(args ...string) *exec.Cmd { return exec.Command("/nowhere/floodproof", args...) }
	kind := func(err error) func(func(...string) *exec.Cmd) server.Kind {
		return func(func(...string) *exec.Cmd) server.Kind {
			return server.Kind{
				Name: "pigeon", Variable: "FLOODPROOF_TEST_PIGEON", Install: "apt-get install pigeon",
				Locate: func(context.Context) (server.Binary, error) { return server.Binary{}, err },
			}
		}
	}
	embedded := Backend{Name: "embedded"}
	if f := embedded.Find(t.Context(), self); f.Why != nil || !embedded.Embedded() {
		t.Errorf("an embedded backend needs something: %v", f.Why)
	}
	there := Backend{Name: "pigeon", Server: kind(nil)}
	if f := there.Find(t.Context(), self); f.Why != nil || there.Embedded() {
		t.Errorf("a server that is installed is missing: %v", f.Why)
	}
	missing := Backend{Name: "pigeon", Server: kind(server.ErrMissing)}
	if f := missing.Find(t.Context(), self); !errors.Is(f.Why, server.ErrMissing) || f.Fix != "apt-get install pigeon" || f.Variable != "FLOODPROOF_TEST_PIGEON" {
		t.Errorf("found %+v, want that it is missing, and what brings it", f)
	}
	t.Setenv("FLOODPROOF_TEST_PIGEON", "pigeon://roof")
	if f := missing.Find(t.Context(), self); f.Why != nil {
		t.Errorf("the user's own server does not count: %v", f.Why)
	}
}

func TestVariant(t *testing.T) {
	for name, want := range map[string]bool{Default: false, "memory": false, "sqlite@normal": true, "redis-streams@everysec": true} {
		b, err := Named(name)
		if err != nil || b.Variant() != want {
			t.Errorf("%s: a variant: %v, error %v, want %v", name, b.Variant(), err, want)
		}
	}
}
