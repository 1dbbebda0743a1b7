//go:build unix

package postgres_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue/server"
)

// processes are all of a running server's but the first.
func processes(t *testing.T, s *server.Server) []int32 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	rows, err := conn.Query(t.Context(), "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

func signal(t *testing.T, pids []int32, signal syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(int(pid), signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("signal process %d: %v", pid, err)
		}
	}
}

// crash ends every process of a server with SIGKILL: they would otherwise have a moment to do something.
func crash(t *testing.T, s *server.Server) {
	t.Helper()
	pids := processes(t, s)
	if err := s.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	signal(t, pids, syscall.SIGKILL)
}

// freeze stops every process of a server where it stands.
func freeze(t *testing.T, s *server.Server) (thaw func()) {
	t.Helper()
	pids := processes(t, s)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	signal(t, pids, syscall.SIGSTOP)
	return func() {
		signal(t, pids, syscall.SIGCONT)
		if err := s.Resume(); err != nil {
			t.Error(err)
		}
	}
}
