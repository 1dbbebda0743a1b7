//go:build linux

package cutfs_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// playRole is what the test binary does as another process: it uses a mount that the tests do something to.
func playRole(role string, args []string) error {
	switch role {
	case "write": // writes and syncs one byte after the other, and says so after each
		f, err := os.OpenFile(args[0], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		for {
			if _, err := f.Write([]byte("x")); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
			if _, err := os.Stdout.WriteString("x\n"); err != nil {
				return err
			}
		}
	case "locks": // says which locks it cannot get
		return tryLocks(args[0])
	}
	return fmt.Errorf("unknown role %q", role)
}

func tryLocks(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		fmt.Fprintln(os.Stdout, "flock:", err)
	}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1}); err != nil {
		fmt.Fprintln(os.Stdout, "fcntl:", err)
	}
	return nil
}

// create writes a file, and syncs it if it is to be durable.
func create(t *testing.T, path, text string, sync bool) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if sync {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// content is a file's text, or why there is none.
func content(path string) string {
	text, err := os.ReadFile(path)
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return string(text)
}

func TestCutKeepsWhatWasSynced(t *testing.T) {
	f := mount(t, cutfs.Config{})
	create(t, filepath.Join(f.Mountpoint, "lost"), "x", false)
	create(t, filepath.Join(f.Mountpoint, "kept"), "kept", true)
	create(t, filepath.Join(f.Mountpoint, "later"), "x", false)
	stats, err := f.Freeze(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if stats.Syncs != 1 || stats.UnsyncedFiles != 2 || stats.LastSync == 0 || stats.LastSync >= stats.Operations || stats.FrozenAt.IsZero() {
		t.Errorf("got %+v", stats)
	}
	dir, result := cut(t, f, "", 0)
	if result.Model != disk.Ext4Ordered {
		t.Errorf("cut as %s", result.Model)
	}
	for name, want := range map[string]string{"kept": "kept", "lost": "", "later": syscall.ENOENT.Error()} {
		if got := content(filepath.Join(dir, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// TestSourceIsDurable goes round: cut, mount what is left, cut again.
func TestSourceIsDurable(t *testing.T) {
	f := mount(t, cutfs.Config{})
	if err := os.MkdirAll(filepath.Join(f.Mountpoint, "a", "b"), 0o750); err != nil {
		t.Fatal(err)
	}
	create(t, filepath.Join(f.Mountpoint, "a", "b", "file"), strings.Repeat("1", 10_000), false)
	if err := errors.Join(os.Symlink("b/file", filepath.Join(f.Mountpoint, "a", "link")),
		os.Link(filepath.Join(f.Mountpoint, "a", "b", "file"), filepath.Join(f.Mountpoint, "twin"))); err != nil {
		t.Fatal(err)
	}
	if err := f.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _ := cut(t, f, "", 0)
	again := mount(t, cutfs.Config{Source: first, Model: disk.POSIXStrict})
	second, _ := cut(t, again, "", 0)
	for _, name := range []string{"a/b/file", "a/link", "twin"} {
		if got := content(filepath.Join(second, name)); got != strings.Repeat("1", 10_000) {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
	one, err := os.Stat(filepath.Join(second, "twin"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.Stat(filepath.Join(second, "a/b/file"))
	if err != nil || !os.SameFile(one, two) {
		t.Errorf("two names of one file became two files (%v)", err)
	}
	if dir, err := os.Stat(filepath.Join(second, "a")); err != nil || dir.Mode().Perm() != 0o750 {
		t.Errorf("directory: %v, %v", dir.Mode(), err)
	}
}

// TestSyncedWrites: a write to a file that was opened for it is durable when it returns.
func TestSyncedWrites(t *testing.T) {
	for name, flag := range map[string]int{"O_SYNC": unix.O_SYNC, "O_DSYNC": unix.O_DSYNC} {
		t.Run(name, func(t *testing.T) {
			f := mount(t, cutfs.Config{})
			file, err := os.OpenFile(filepath.Join(f.Mountpoint, "file"), os.O_CREATE|os.O_WRONLY|flag, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteString("synced"); err != nil {
				t.Fatal(err)
			}
			dir, _ := cut(t, f, "", 0)
			if got := content(filepath.Join(dir, "file")); got != "synced" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestDirectories: a sync of a directory, of either kind, keeps names in the strict model, and nothing else does.
func TestDirectories(t *testing.T) {
	f := mount(t, cutfs.Config{Model: disk.POSIXStrict})
	for _, dir := range []string{"fsync", "fdatasync", "neither"} {
		if err := os.Mkdir(filepath.Join(f.Mountpoint, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	for dir, sync := range map[string]func(int) error{"fsync": unix.Fsync, "fdatasync": unix.Fdatasync, "neither": nil} {
		create(t, filepath.Join(f.Mountpoint, dir, "file"), "text", true)
		if sync == nil {
			continue
		}
		d, err := os.Open(filepath.Join(f.Mountpoint, dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sync(int(d.Fd())), d.Close()); err != nil {
			t.Fatalf("%s of a directory: %v", dir, err)
		}
	}
	after, _ := cut(t, f, "", 0)
	for dir, want := range map[string]string{"fsync": "text", "fdatasync": "text", "neither": syscall.ENOENT.Error()} {
		if got := content(filepath.Join(after, dir, "file")); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestFailedSync(t *testing.T) {
	f := mount(t, cutfs.Config{})
	file, err := os.Create(filepath.Join(f.Mountpoint, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString("lost"); err != nil {
		t.Fatal(err)
	}
	if err := f.FailFsync(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); !errors.Is(err, syscall.EIO) {
		t.Errorf("the sync that was to fail: %v", err)
	}
	if err := file.Sync(); err != nil {
		t.Errorf("the next one: %v", err)
	}
	dir, _ := cut(t, f, "", 0)
	if got := content(filepath.Join(dir, "file")); got != "\x00\x00\x00\x00" {
		t.Errorf("%q is left: a later sync has written what the failed one left behind", got)
	}
}

// TestSlowSync cuts while a sync is under way: it never was.
func TestSlowSync(t *testing.T) {
	f := mount(t, cutfs.Config{})
	if err := f.SlowFsync(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	writer := startWriter(t, f)
	waitFor(t, func() bool {
		s, err := f.Stats(t.Context())
		return err == nil && s.Operations >= writer.before+3 // creation, write, sync
	})
	dir, result := cut(t, f, "", 0)
	if got := content(filepath.Join(dir, "file")); got != syscall.ENOENT.Error() {
		t.Errorf("%q is left of a sync that did not end", got)
	}
	if result.Stats.Syncs != 0 {
		t.Errorf("%d syncs ended", result.Stats.Syncs)
	}
	writer.kill(t)
	if writer.acked != 0 {
		t.Errorf("%d syncs were answered", writer.acked)
	}
}

// writer is a process that writes and syncs until it is killed.
type writer struct {
	process *os.Process
	lines   *bufio.Scanner
	acked   int
	before  uint64
	wait    func() error
}

func startWriter(t *testing.T, f *cutfs.FS) *writer {
	t.Helper()
	stats, err := f.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := self("write", filepath.Join(f.Mountpoint, "file"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &writer{process: cmd.Process, lines: bufio.NewScanner(out), before: stats.Operations, wait: cmd.Wait}
}

// kill ends the process and counts what it had said.
func (w *writer) kill(t *testing.T) {
	t.Helper()
	if err := w.process.Kill(); err != nil {
		t.Fatal(err)
	}
	for w.lines.Scan() {
		w.acked++
	}
	_ = w.wait() // it was killed
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("waited for nothing")
		}
	}
}

// TestFreeze: nobody is answered after the power is off, everybody who was has what was promised, and the processes that hang can be killed.
func TestFreeze(t *testing.T) {
	f := mount(t, cutfs.Config{})
	w := startWriter(t, f)
	for range 50 {
		if !w.lines.Scan() {
			t.Fatal("the writer ended")
		}
		w.acked++
	}
	if _, err := f.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.kill(t)
	dir, _ := cut(t, f, "", 0)
	got := len(content(filepath.Join(dir, "file")))
	if got < w.acked || got > w.acked+1 {
		t.Errorf("%d bytes are left of %d syncs that were answered", got, w.acked)
	}
}

// TestManyCuts: one instant, many ways to come back from it.
func TestManyCuts(t *testing.T) {
	f := mount(t, cutfs.Config{})
	old, fresh := bytes.Repeat([]byte("o"), 64<<10), bytes.Repeat([]byte("n"), 64<<10)
	create(t, filepath.Join(f.Mountpoint, "file"), string(old), true)
	file, err := os.OpenFile(filepath.Join(f.Mountpoint, "file"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.Write(fresh)
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for seed := range uint64(8) {
		dir, _ := cut(t, f, disk.RandomSubset, seed)
		seen[content(filepath.Join(dir, "file"))] = true
	}
	if len(seen) < 6 {
		t.Errorf("8 seeds gave %d different files", len(seen))
	}
	for model, want := range map[disk.Model]string{disk.Ext4Ordered: "oooo", disk.TornLastWrite: "nnnn"} {
		dir, _ := cut(t, f, model, 1)
		if got := content(filepath.Join(dir, "file")); got[:4] != want || got[len(got)-4:] != "oooo" {
			t.Errorf("%s: begins %s, ends %s", model, got[:4], got[len(got)-4:])
		}
	}
	if _, err := f.Cut(t.Context(), cutfs.Cut{Model: disk.POSIXStrict, Dir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "armed") {
		t.Errorf("a model that was not armed: %v", err)
	}
}

// TestMapping: a shared mapping works, which SQLite needs for its index of the log.
func TestMapping(t *testing.T) {
	f := mount(t, cutfs.Config{})
	create(t, filepath.Join(f.Mountpoint, "map"), strings.Repeat("a", 8192), false)
	file, err := os.OpenFile(filepath.Join(f.Mountpoint, "map"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	memory, err := unix.Mmap(int(file.Fd()), 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	copy(memory[4090:], "mapped")
	got := make([]byte, 6)
	if _, err := file.ReadAt(got, 4090); err != nil || string(got) != "mapped" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := errors.Join(unix.Msync(memory, unix.MS_SYNC), unix.Munmap(memory)); err != nil {
		t.Fatal(err)
	}
	dir, _ := cut(t, f, "", 0)
	if got := content(filepath.Join(dir, "map")); len(got) != 8192 || got[4090:4096] != "mapped" {
		t.Error("what was mapped and synced is not left")
	}
}

// TestLocks takes both kinds of lock, and another process must not get them.
func TestLocks(t *testing.T) {
	f := mount(t, cutfs.Config{})
	path := filepath.Join(f.Mountpoint, "lock")
	create(t, path, "x", false)
	locked := func() string {
		out, err := self("locks", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := locked(); got != "" {
		t.Errorf("without a lock: %s", got)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_EX), unix.FcntlFlock(file.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1})); err != nil {
		t.Fatal(err)
	}
	if got := locked(); !strings.Contains(got, "flock:") || !strings.Contains(got, "fcntl:") {
		t.Errorf("another process got what is locked: %q", got)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if got := locked(); got != "" {
		t.Errorf("after the lock: %s", got)
	}
}

// TestCloseHeals kills the child under a process that uses the mount.
func TestCloseHeals(t *testing.T) {
	for name, frozen := range map[string]bool{"running": false, "frozen": true} {
		t.Run(name, func(t *testing.T) {
			f := mount(t, cutfs.Config{})
			w := startWriter(t, f)
			if !w.lines.Scan() {
				t.Fatal("the writer ended")
			}
			if frozen {
				if _, err := f.Freeze(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := syscall.Kill(f.Pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
			assertUnmounted(t, f.Mountpoint)
			if err := w.wait(); err == nil {
				t.Error("the writer did not notice")
			}
			if _, err := f.Stats(t.Context()); err == nil {
				t.Error("a child that is dead gives figures")
			}
		})
	}
}

// TestChildFollowsParent: when the connection ends, as it does with the parent, the child takes the mount away and goes.
func TestChildFollowsParent(t *testing.T) {
	f := mount(t, cutfs.Config{})
	w := startWriter(t, f)
	if !w.lines.Scan() {
		t.Fatal("the writer ended")
	}
	if err := f.Hangup(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.Ended():
	case <-t.Context().Done():
		t.Fatal("the child stays")
	}
	assertUnmounted(t, f.Mountpoint)
	if entries, err := os.ReadDir(f.Backing()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is still there, with %d entries (%v)", len(entries), err)
	}
	if err := w.wait(); err == nil {
		t.Error("the writer did not notice")
	}
}

func TestMountTellsWhy(t *testing.T) {
	f := mount(t, cutfs.Config{}) // where this is possible
	_, err := cutfs.Mount(t.Context(), nil, cutfs.Config{Mountpoint: filepath.Join(f.Mountpoint, "none")})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no mount point: %v", err)
	}
	if _, err := f.Cut(t.Context(), cutfs.Cut{}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("no directory: %v", err)
	}
	if err := f.Arm(t.Context(), "harmless"); err == nil || !strings.Contains(err.Error(), "known") {
		t.Errorf("no model: %v", err)
	}
}

func assertUnmounted(t *testing.T, path string) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(mounts, []byte(path+" ")) {
		t.Errorf("%s is still mounted", path)
	}
}
