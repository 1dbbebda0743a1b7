package container_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"floodproof/reference/queue/server"
	"floodproof/reference/queue/server/container"
)

func TestWithoutDocker(t *testing.T) {
	for role, want := range map[string]string{"no docker": "no socket", "dies": "helper has ended", "dumb": "cannot"} {
		_, err := container.Config{Program: program(role), Run: "none"}.Start(t.Context(), server.Redis())
		if err == nil || !strings.Contains(err.Error(), want) && role != "dies" {
			t.Errorf("helper %q: error %v, want one that says %q", role, err, want)
		}
		if got, want := errors.Is(err, container.ErrNoDocker), role == "no docker"; got != want {
			t.Errorf("helper %q: error %v is ErrNoDocker: %v, want %v", role, err, got, want)
		}
	}
	missing := func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "nothing")) }
	if _, err := (container.Config{Program: missing}).Start(t.Context(), server.Redis()); !errors.Is(err, container.ErrNoDocker) || !errors.Is(err, server.ErrMissing) {
		t.Errorf("no helper: error %v, want ErrNoDocker, which is ErrMissing too", err)
	}
	if _, err := (container.Config{Program: missing}).Start(t.Context(), server.Memory("none")); !errors.Is(err, container.ErrNoDocker) {
		t.Errorf("a broker without an image: error %v, want ErrNoDocker", err)
	}
}

// started is a broker in a container of a run of its own, or a skipped test.
func started(t *testing.T, kind server.Kind, settings map[string]string) (*container.Server, container.Config) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a container")
	}
	run := strings.ReplaceAll(t.Name(), "/", "-") + fmt.Sprint(os.Getpid())
	c := container.Config{Program: program("helper"), Run: run, Log: filepath.Join(t.TempDir(), "log"), Settings: settings}
	s, err := c.Start(t.Context(), kind)
	if errors.Is(err, container.ErrNoDocker) && os.Getenv("FLOODPROOF_REQUIRE_DOCKER") == "" {
		t.Skipf("SKIPPED: %v; .ci/docker runs a command with a daemon", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		nothingIsLeft(t, run)
	})
	return s, c
}

// nothingIsLeft waits until no container of a run is there.
func nothingIsLeft(t *testing.T, run string) {
	t.Helper()
	api, err := client.New(client.FromEnv)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		left, err := api.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", container.Label+"="+run)})
		if err != nil {
			t.Fatal(err)
		}
		if len(left.Items) == 0 {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			t.Fatalf("%d containers of run %s are left", len(left.Items), run)
		}
	}
}

// redisSays sends one command and returns the answer's first line, within a time.
func redisSays(t *testing.T, address, command string, within time.Duration) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "redis://"))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, command+"\r\n"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line), err
}

// TestRedis breaks a Redis in every way, and finds what it acknowledged.
func TestRedis(t *testing.T) {
	t.Parallel()
	s, config := started(t, server.Redis(), nil)
	ctx, patience := t.Context(), 10*time.Second
	if got, err := redisSays(t, s.Address(), "SET paid 1", patience); got != "+OK" || err != nil {
		t.Fatalf("SET: %q, error %v", got, err)
	}
	if err := s.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := redisSays(t, s.Address(), "PING", patience); err == nil || s.Running() {
		t.Errorf("after Kill it answers with error %v, and Running is %v", err, s.Running())
	}
	if err := s.Kill(ctx); err != nil {
		t.Errorf("killing what is dead: %v", err)
	}
	for range 2 { // starting what runs does nothing
		if err := s.Restart(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := redisSays(t, s.Address(), "INCR paid", patience); got != ":2" || err != nil {
		t.Errorf("INCR after a kill: %q, error %v, want :2", got, err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if got, err := redisSays(t, s.Address(), "PING", 300*time.Millisecond); err == nil {
		t.Errorf("it answers %q while it is paused", got)
	}
	for range 2 { // resuming what is not paused does nothing
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := redisSays(t, s.Address(), "PING", patience); got != "+PONG" || err != nil {
		t.Errorf("PING after Resume: %q, error %v", got, err)
	}
	if got, want := s.Image(), "redis"; !strings.Contains(got, want) {
		t.Errorf("image %q, want one of %s", got, want)
	}
	if err := errors.Join(s.Pause(), s.Kill(ctx), s.Restart(ctx)); err != nil {
		t.Errorf("killing what is paused, and starting it: %v", err)
	}
	if err := s.Terminate(ctx); err != nil || s.Running() {
		t.Errorf("Terminate: error %v, running %v", err, s.Running())
	}
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(config.Log); err != nil || !strings.Contains(string(log), "Received SIGTERM") {
		t.Errorf("log %q, error %v, want what it printed", log, err)
	}
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	s, _ := started(t, server.Postgres(), map[string]string{"max_connections": "17"})
	query := func(sql string) (got string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return got
	}
	if got := query("SHOW max_connections"); got != "17" {
		t.Errorf("max_connections %s, want the setting's 17", got)
	}
	if got := query("SHOW fsync"); got != "on" {
		t.Errorf("fsync %s, want on", got)
	}
	query("SELECT lo_from_bytea(4711, 'paid')::text")
	if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := query("SELECT convert_from(lo_get(4711), 'UTF8')"); got != "paid" {
		t.Errorf("after a kill the large object is %q, want paid", got)
	}
}

func TestNATS(t *testing.T) {
	t.Parallel()
	s, _ := started(t, server.NATS("none"), nil)
	publish := func() uint64 {
		t.Helper()
		conn, err := nats.Connect(s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "PAID", Subjects: []string{"paid"}}); err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(t.Context(), "paid", nil)
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	if got := publish(); got != 1 {
		t.Errorf("first sequence %d, want 1", got)
	}
	if err := errors.Join(s.Kill(t.Context()), s.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := publish(); got != 2 {
		t.Errorf("sequence after a kill %d, want 2", got)
	}
}

// TestBadSetting: what the broker says of it comes back, and nothing stays.
func TestBadSetting(t *testing.T) {
	t.Parallel()
	started(t, server.Redis(), nil) // or skipped
	run := fmt.Sprint("bad", os.Getpid())
	_, err := container.Config{Program: program("helper"), Run: run, Settings: map[string]string{"appendfsync": "sometimes"}}.Start(t.Context(), server.Redis())
	if err == nil || !strings.Contains(err.Error(), "appendfsync") {
		t.Errorf("error %v, want the server's own words", err)
	}
	nothingIsLeft(t, run)
}

// TestKilledOwner: whoever wanted the container is dead, and it goes.
func TestKilledOwner(t *testing.T) {
	t.Parallel()
	started(t, server.Redis(), nil) // or skipped
	run := fmt.Sprint("owned", os.Getpid())
	cmd := program("owner", run)()
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if got, err := redisSays(t, strings.TrimSpace(address), "PING", 10*time.Second); got != "+PONG" {
		t.Fatalf("before the kill: %q, error %v", got, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	nothingIsLeft(t, run)
}

// TestRemove: owner and helper are dead, and who knows the run removes what they left.
func TestRemove(t *testing.T) {
	t.Parallel()
	s, config := started(t, server.Redis(), nil)
	s.KillHelper(t)
	if got, err := redisSays(t, s.Address(), "PING", 10*time.Second); got != "+PONG" {
		t.Fatalf("without its helper: %q, error %v, want a container that is left behind", got, err)
	}
	if said, err := program("helper", "remove", config.Run)().Output(); err != nil {
		t.Fatalf("remove: %v\n%s", err, said)
	}
	nothingIsLeft(t, config.Run)
}
