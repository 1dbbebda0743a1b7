package backends

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"floodproof/reference/queue/server"
)

// elsewhere is a program beside which nothing lies.
func elsewhere(t *testing.T) func(args ...string) *exec.Cmd {
	path := filepath.Join(t.TempDir(), "floodproof")
	return func(args ...string) *exec.Cmd { return exec.Command(path, args...) }
}

func TestFindInOrder(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no program of any kind
	backend := func(name string, kind server.Kind) Backend {
		return Backend{Name: name, Server: func(func(...string) *exec.Cmd) server.Kind { return kind }}
	}
	gone := server.Kind{Name: "nats", Variable: "FLOODPROOF_NATS_URL", Install: "apt-get install nats-server", Locate: func(context.Context) (server.Binary, error) {
		return server.Binary{}, server.ErrMissing
	}}
	t.Setenv("FLOODPROOF_NATS_URL", "")
	t.Setenv("FLOODPROOF_REDIS_URL", "redis://:hidden@127.0.0.1:1")
	tests := []struct {
		name    string
		backend Backend
		want    string
	}{
		{"embedded", Backend{Name: "sqlite"}, "embedded"},
		{"the user's own", backend("redis", server.Redis()), "address given in FLOODPROOF_REDIS_URL"},
		{"nothing", backend("nats", gone), ""},
	}
	for _, tt := range tests {
		if got := tt.backend.Find(t.Context(), elsewhere(t)); got.String() != tt.want || (got.Kind == "") != (got.Why != nil) {
			t.Errorf("%s: got %q, why %v, want %q", tt.name, got, got.Why, tt.want)
		}
	}
	for _, only := range []string{"binary", "container"} {
		t.Setenv(WayVariable, only)
		if got := backend("nats", gone).Find(t.Context(), elsewhere(t)); got.Kind != "" || !errors.Is(got.Why, server.ErrMissing) || got.Fix == "" {
			t.Errorf("%s alone: got %q, why %v, fix %q, want none, that it is missing, and a remedy", only, got, got.Why, got.Fix)
		}
	}
}

func TestWayOfProgram(t *testing.T) {
	self := elsewhere(t)
	for want, b := range map[string]server.Binary{
		"built in nats-server 2.15": {Path: self().Path, Version: "nats-server 2.15"},
		"binary /bin/redis (7)":     {Path: "/bin/redis", Version: "7"},
	} {
		if got := BinaryWay(b, self).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCheckWays(t *testing.T) {
	for value, ok := range map[string]bool{"": true, "binary": true, "container": true, "docker": false} {
		t.Setenv(WayVariable, value)
		if err := CheckWays(); (err == nil) != ok {
			t.Errorf("%s=%q: error %v, want accepted %v", WayVariable, value, err, ok)
		}
	}
}

// TestFindContainer: a backend whose server only a container can give is found, by everybody who asks: there is one way of asking.
func TestFindContainer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	self := elsewhere(t)
	helper := filepath.Join(filepath.Dir(self().Path), ContainerProgram)
	if err := os.WriteFile(helper, []byte("#!/bin/sh\necho '{\"version\":\"27.1\"}'\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("FLOODPROOF_REDIS_URL", "")
	missing := server.Redis()
	missing.Locate = func(context.Context) (server.Binary, error) { return server.Binary{}, server.ErrMissing }
	b := Backend{Name: "redis-streams", Server: func(func(...string) *exec.Cmd) server.Kind { return missing }}
	got := b.Find(t.Context(), self)
	if got.Why != nil || got.Kind != "container" || !strings.HasPrefix(got.Detail, "redis:") || got.Variable != "FLOODPROOF_REDIS_URL" || got.Fix != "" {
		t.Errorf("got %+v, want a container of Redis", got.Way)
	}
	t.Setenv(WayVariable, "binary")
	if got := b.Find(t.Context(), self); !errors.Is(got.Why, server.ErrMissing) || got.Fix == "" {
		t.Errorf("no container is allowed: got %+v, want that it is missing", got.Way)
	}
}
