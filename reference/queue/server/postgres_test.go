package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"floodproof/reference/queue/server"
)

func TestPostgresLife(t *testing.T) {
	s := start(t, server.Postgres(), nil)
	if !strings.Contains(s.Instance.Binary.Version, "PostgreSQL") {
		t.Errorf("version: got %q", s.Instance.Binary.Version)
	}
	before := s.Address()
	for name, end := range map[string]func() error{
		"killed":     func() error { return s.Kill(t.Context()) },
		"terminated": func() error { return s.Terminate(t.Context()) },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if s.Running() || s.Kind.Ready(t.Context(), s.Address()) == nil {
			t.Errorf("%s and still there", name)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.Address(); got != before {
		t.Errorf("the address changed from %s to %s", before, got)
	}
	if err := errors.Join(s.Pause(), s.Resume(), s.Kind.Ready(t.Context(), s.Address()), s.Terminate(t.Context())); err != nil {
		t.Errorf("paused, resumed, terminated: %v", err)
	}
}

// TestPostgresRepeatsInit begins where an earlier initdb was interrupted.
func TestPostgresRepeatsInit(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "init", "data")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "rest"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.Postgres(), dir, nil)
	if errors.Is(err, server.ErrMissing) && os.Getenv("FLOODPROOF_REQUIRE") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Terminate(t.Context()), s.Stop(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestPostgresTellsWhy(t *testing.T) {
	_, err := server.Start(t.Context(), server.Postgres(), t.TempDir(), map[string]string{"fsync": "sometimes"})
	if errors.Is(err, server.ErrMissing) {
		t.Skipf("SKIPPED: %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "fsync") {
		t.Errorf("with a wrong setting: %v, want its last words", err)
	}
}
