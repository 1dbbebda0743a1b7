//go:build linux

package brokers_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"floodproof/chaos/cutfs"
)

// postgres is a server of its own directory. It refuses to run as root.
type postgres struct {
	t          *testing.T
	bin        string
	as         *syscall.Credential
	data, sock string
	server     *exec.Cmd
}

func newPostgres(t *testing.T) *postgres {
	t.Helper()
	account, err := user.Lookup("postgres")
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(paths) == 0 {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			t.Fatal("no PostgreSQL: apt-get install postgresql")
		}
		t.Skip("SKIPPED: no PostgreSQL: apt-get install postgresql")
	}
	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		t.Fatal(err)
	}
	// Sockets have short names, and a directory that the account can reach.
	sock, err := os.MkdirTemp("/tmp", "pg") //nolint:usetesting // t.TempDir is too long for a socket, and closed to the account
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sock) })
	if err := os.Chown(sock, uid, gid); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	return &postgres{t: t, bin: filepath.Dir(paths[len(paths)-1]), as: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, sock: sock}
}

func (p *postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as, Setpgid: true}
	cmd.Dir = p.sock
	return cmd
}

// start runs the server on a directory until the test ends or kill.
func (p *postgres) start(data string, settings ...string) {
	p.t.Helper()
	args := []string{"-D", data, "-k", p.sock, "-c", "listen_addresses="}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	p.server = p.command("postgres", args...)
	if err := p.server.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.server != nil {
			p.kill()
		}
	})
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for p.command("pg_isready", "-q", "-h", p.sock).Run() != nil {
		select {
		case <-tick.C:
		case <-p.t.Context().Done():
			p.t.Fatal("PostgreSQL does not start")
		}
	}
}

// kill ends the server and its children, each of which leads a process group of its own.
func (p *postgres) kill() {
	p.t.Helper()
	pid := p.server.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		p.t.Error(err)
	}
	for _, child := range append(strings.Fields(string(children)), strconv.Itoa(pid)) {
		n, err := strconv.Atoi(child)
		if err == nil {
			err = syscall.Kill(n, syscall.SIGKILL)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			p.t.Error(err)
		}
	}
	_ = p.server.Wait() // it was killed
	p.server = nil
}

// insert inserts one row after the other and counts those that were committed, until the server is gone.
func (p *postgres) insert(reached int, then func()) (acked int) {
	p.t.Helper()
	client := p.command("psql", "-qAt", "-h", p.sock, "postgres")
	in, err := client.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := client.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := client.Start(); err != nil {
		p.t.Fatal(err)
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		for n := 0; ; n++ {
			if _, err := fmt.Fprintf(in, "INSERT INTO jobs VALUES (%d) RETURNING id;\n", n); err != nil {
				return // the client is gone, because the server is
			}
		}
	}()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if acked++; acked == reached {
			then()
		}
	}
	_ = client.Wait() // it lost its server
	<-fed
	return acked
}

// TestPostgresPower cuts the power under synchronous_commit on, which must lose nothing, and off, which must lose the last moments.
func TestPostgresPower(t *testing.T) {
	for setting, mayLose := range map[string]bool{"on": false, "off": true} {
		t.Run("synchronous_commit="+setting, func(t *testing.T) {
			p := newPostgres(t)
			f := mount(t, cutfs.Config{})
			p.data = filepath.Join(f.Mountpoint, "data")
			if err := errors.Join(openTo(f.Mountpoint), os.Mkdir(p.data, 0o700), os.Chown(p.data, int(p.as.Uid), int(p.as.Gid))); err != nil {
				t.Fatal(err)
			}
			if out, err := p.command("initdb", "-D", p.data, "--auth=trust").CombinedOutput(); err != nil {
				t.Fatalf("initdb: %v\n%s", err, out)
			}
			p.start(p.data, "synchronous_commit="+setting, "wal_writer_delay=10s", "wal_writer_flush_after=0")
			if out, err := p.command("psql", "-h", p.sock, "postgres", "-c", "CREATE TABLE jobs (id integer PRIMARY KEY)").CombinedOutput(); err != nil {
				t.Fatalf("create a table: %v\n%s", err, out)
			}
			if err := f.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			acked := p.insert(1000, func() {
				if _, err := f.Freeze(t.Context()); err != nil {
					t.Error(err)
				}
				p.kill()
			})
			left, _ := cut(t, f, cutfs.Cut{})
			if err := openTo(left); err != nil {
				t.Fatal(err)
			}
			p.start(filepath.Join(left, "data"))
			out, err := p.command("psql", "-qAt", "-h", p.sock, "postgres", "-c", "SELECT count(*) FROM jobs").Output()
			if err != nil {
				t.Fatal(err)
			}
			var got int
			if _, err := fmt.Sscan(strings.TrimSpace(string(out)), &got); err != nil {
				t.Fatal(err)
			}
			p.kill()
			t.Logf("%d of %d committed", got, acked)
			if lost := got < acked; lost != mayLose {
				t.Errorf("%d of %d committed rows are there", got, acked)
			}
		})
	}
}

// openTo lets other accounts through to a directory of the test.
func openTo(dir string) error {
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			return err
		}
	}
	return nil
}
