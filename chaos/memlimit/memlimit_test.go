//go:build linux

package memlimit

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gluttonVariable makes the test binary a process that takes memory, a MiB for each byte of its input.
const gluttonVariable = "MEMLIMIT_TEST_GLUTTON"

func TestMain(m *testing.M) {
	if os.Getenv(gluttonVariable) == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stdout, "ready")
	var all [][]byte
	for in := bufio.NewReader(os.Stdin); ; {
		if _, err := in.ReadByte(); err != nil {
			os.Exit(0)
		}
		all = append(all, make([]byte, 1<<20))
		for i := 0; i < 1<<20; i += 4096 {
			all[len(all)-1][i] = 1
		}
		fmt.Fprintln(os.Stdout, "had", len(all))
	}
}

// glutton is such a process.
type glutton struct {
	*exec.Cmd
	in  interface{ Write([]byte) (int, error) }
	out *bufio.Reader
}

func startGlutton(t *testing.T) glutton {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), gluttonVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := glutton{cmd, in, bufio.NewReader(out)}
	if _, err := g.out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return g
}

// eat lets it take n MiB and reports how many it had before it was gone.
func (g glutton) eat(n int) int {
	for i := range n {
		if _, err := g.in.Write([]byte{1}); err != nil {
			return i
		}
		if _, err := g.out.ReadString('\n'); err != nil {
			return i
		}
	}
	return n
}

// ways are how a process can be limited here, each with what it is expected to end with.
func ways(t *testing.T) map[Means]func(pid int, name string, room int64) (*Limit, error) {
	t.Helper()
	list := map[Means]func(int, string, int64) (*Limit, error){
		RLimit: func(pid int, _ string, room int64) (*Limit, error) { return setRLimit(pid, room) },
	}
	for _, h := range hierarchies() {
		if dir, err := h.make(filepath.Base(t.Name())); err == nil {
			list[h.means] = h.set
			if err := removeGroup(dir); err != nil {
				t.Error(err)
			}
		}
	}
	for _, means := range []Means{CgroupV1, CgroupV2} {
		if list[means] == nil {
			t.Logf("SKIPPED: %s: it needs a memory cgroup that this user may make", means)
		}
	}
	return list
}

// TestLimit: a process is ended near its limit, by the kernel where there is a group, and nothing of the limit is left.
func TestLimit(t *testing.T) {
	const room, most = 16, 200 // MiB
	for means, set := range ways(t) {
		t.Run(string(means), func(t *testing.T) {
			g := startGlutton(t)
			l, err := set(g.Process.Pid, "floodproof-test-limit", room<<20)
			if err != nil {
				t.Fatal(err)
			}
			if l.Means != means {
				t.Errorf("limited by %s", l.Means)
			}
			// Go takes memory from the kernel in pieces of 4 MiB and more, so that it is stopped a little early or late.
			if had := g.eat(most); had < room/4 || had > 4*room {
				t.Errorf("it was ended when it had %d MiB, with room for %d", had, room)
			}
			_ = g.Wait() // the state says it
			kills, known, err := l.Kills()
			if err != nil {
				t.Error(err)
			}
			status := g.ProcessState.Sys().(syscall.WaitStatus)
			switch means {
			case RLimit: // Go's runtime gives up with status 2, and the race detector with one of its own
				if !status.Exited() || status.ExitStatus() == 0 || known {
					t.Errorf("it ended with %v, kills known: %t", g.ProcessState, known)
				}
			default:
				if status.Signal() != syscall.SIGKILL || kills != 1 || !known {
					t.Errorf("it ended with %v, %d kills", g.ProcessState, kills)
				}
			}
			if err := errors.Join(l.Remove(), l.Remove()); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(l.Group); l.Group != "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the group is left: %v", err)
			}
		})
	}
}

// TestRemove: a process that has not come to its limit has none any more, and lives on.
func TestRemove(t *testing.T) {
	for means, set := range ways(t) {
		t.Run(string(means), func(t *testing.T) {
			g := startGlutton(t)
			l, err := set(g.Process.Pid, "floodproof-test-remove", 32<<20)
			if err != nil {
				t.Fatal(err)
			}
			if had := g.eat(1); had != 1 {
				t.Error("it was ended below its limit")
			}
			if err := l.Remove(); err != nil {
				t.Fatal(err)
			}
			if had := g.eat(64); had != 64 {
				t.Errorf("it was ended at %d MiB without a limit", had)
			}
			if err := g.Process.Kill(); err != nil {
				t.Error(err)
			}
			_ = g.Wait()
		})
	}
}

func TestSetOfNobody(t *testing.T) {
	const nobody = 1 << 22 // above pid_max of every machine
	if l, err := Set(nobody, "floodproof-test-nobody", 1<<20); !errors.Is(err, ErrUnavailable) || l != nil {
		t.Errorf("got %v, error %v", l, err)
	}
	for _, h := range hierarchies() {
		for _, parent := range h.parents {
			if _, err := os.Stat(filepath.Join(parent, "floodproof-test-nobody")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a group is left in %s", parent)
			}
		}
	}
	if means, err := Available(); err != nil || means == "" {
		t.Errorf("available: %q, error %v", means, err)
	}
}

// TestParseHierarchies: a machine with version 1, one with version 2, and one with both.
func TestParseHierarchies(t *testing.T) {
	const (
		v1     = "31 30 0:27 / /sys/fs/cgroup/memory rw,relatime shared:13 - cgroup cgroup rw,memory\n"
		v1cpu  = "32 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
		v2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n"
		root   = "23 1 8:1 / / rw - ext4 /dev/sda1 rw\nbroken\n"
	)
	for _, tt := range []struct {
		name, mounts, own string
		want              []string
	}{
		{"none", root, "", nil},
		{"version 1", root + v1cpu + v1, "5:cpu,cpuacct:/a\n4:memory:/b/c\n0::/d\n", []string{"cgroup v1 /sys/fs/cgroup/memory/b/c"}},
		{"version 2", root + v2, "0::/user.slice/session-1.scope\n", []string{"cgroup v2 /sys/fs/cgroup/user.slice/session-1.scope /sys/fs/cgroup/user.slice /sys/fs/cgroup"}},
		{"both", v1 + hybrid, "4:memory:/\n0::/\n", []string{"cgroup v2 /sys/fs/cgroup/unified", "cgroup v1 /sys/fs/cgroup/memory"}},
	} {
		var got []string
		for _, h := range parseHierarchies([]byte(tt.mounts), []byte(tt.own)) {
			got = append(got, string(h.means)+" "+strings.Join(h.parents, " "))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
