package server_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"floodproof/reference/queue/nats/child"
	"floodproof/reference/queue/server"
)

// serverRole, as the first argument, makes the test binary a NATS server.
const serverRole = "nats-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serverRole {
		os.Exit(child.Main(os.Args[2:]))
	}
	logging.Disable() // the client of Redis writes each failed dial to standard error, and servers are killed here
	goleak.VerifyTestMain(m)
}

// start runs a server for one test. Without its binary the test is skipped, or fails where servers are required.
func start(t *testing.T, kind server.Kind, settings map[string]string) *server.Server {
	t.Helper()
	s, err := server.Start(t.Context(), kind, t.TempDir(), settings)
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestLife(t *testing.T) {
	s := start(t, server.Redis(), nil)
	if err := s.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "is running") {
		t.Errorf("starting it twice: %v", err)
	}
	for _, end := range []struct {
		name string
		how  func() error
	}{
		{"killed", func() error { return s.Kill(t.Context()) }},
		{"terminated", func() error { return s.Terminate(t.Context()) }},
	} {
		if err := end.how(); err != nil {
			t.Fatal(err)
		}
		if s.Running() || s.Kind.Ready(t.Context(), s.Address()) == nil {
			t.Errorf("%s and still there", end.name)
		}
		if err := s.Pause(); err == nil {
			t.Errorf("%s and can be paused", end.name)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Pause(), s.Resume(), s.Kind.Ready(t.Context(), s.Address())); err != nil {
		t.Errorf("paused and resumed: %v", err)
	}
}

func TestStartTellsWhy(t *testing.T) {
	kind := server.Redis()
	_, err := server.Start(t.Context(), kind, t.TempDir(), map[string]string{"appendfsync": "sometimes"})
	if errors.Is(err, server.ErrMissing) {
		if !strings.Contains(err.Error(), kind.Install) {
			t.Errorf("%v: does not say how to get it", err)
		}
		t.Skipf("SKIPPED: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "sometimes") {
		t.Errorf("with a wrong setting: %v, want its last words", err)
	}
}
