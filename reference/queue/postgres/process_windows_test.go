package postgres_test

import (
	"testing"

	"floodproof/reference/queue/server"
)

func crash(t *testing.T, s *server.Server) {
	t.Helper()
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func freeze(t *testing.T, _ *server.Server) (thaw func()) {
	t.Helper()
	t.Skip("SKIPPED: Windows cannot stop a process where it stands")
	return nil
}
