package cutfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// fsType is how the mount is told from others.
const fsType = "fuse.floodproof-cutfs"

// FS is a mounted file system and the child process that serves it. The methods of its Client may be called concurrently, Close too.
type FS struct {
	*Client
	// Mountpoint is where it is, absolute and without symbolic links.
	Mountpoint string

	cmd     *exec.Cmd
	ended   chan struct{} // closed when the child is gone
	words   *lastWords
	backing string // to be removed, if it is ours

	once sync.Once
	err  error
}

// available is described at Available.
func available() error {
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var data [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &data[0]); err != nil {
		return fmt.Errorf("%w: read the capabilities: %w", ErrUnavailable, err)
	}
	if data[0].Effective&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return fmt.Errorf("%w: mounting needs root (CAP_SYS_ADMIN)", ErrUnavailable)
	}
	return nil
}

// Mount starts the child and returns when the file system is there. The command must run ServeStdin; Mount sets its standard input and its process group. The context
// bounds the start alone.
func Mount(ctx context.Context, command func() *exec.Cmd, cfg Config) (_ *FS, err error) {
	if err := Available(); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	f := &FS{ended: make(chan struct{}), words: new(lastWords)}
	if cfg.Mountpoint, err = filepath.EvalSymlinks(cfg.Mountpoint); err == nil {
		cfg.Mountpoint, err = filepath.Abs(cfg.Mountpoint)
	}
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	f.Mountpoint = cfg.Mountpoint
	if cfg.Backing == "" {
		if cfg.Backing, err = os.MkdirTemp("", "cutfs-"); err != nil {
			return nil, fmt.Errorf("mount: %w", err)
		}
		f.backing = cfg.Backing
	}
	if err := f.start(command()); err != nil {
		return nil, errors.Join(fmt.Errorf("mount: start the child: %w", err), f.removeBacking())
	}
	if _, err := f.call(ctx, request{Verb: verbMount, Config: &cfg, Temporary: f.backing != ""}); err != nil {
		err = errors.Join(err, f.Close(context.WithoutCancel(ctx)))
		return nil, fmt.Errorf("mount on %s: %w%s", cfg.Mountpoint, err, f.words.after())
	}
	return f, nil
}

// start runs the child with one end of a socket.
func (f *FS) start(cmd *exec.Cmd) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "cutfs"), os.NewFile(uintptr(fds[1]), "cutfs")
	conn, err := net.FileConn(ours)
	err = errors.Join(err, ours.Close())
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	cmd.Stdin = theirs
	if cmd.Stderr == nil {
		cmd.Stderr = f.words
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true // an interrupt from the keyboard is for the parent, which closes
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		return errors.Join(err, conn.Close())
	}
	f.cmd, f.Client = cmd, NewClient(conn)
	go func() {
		_ = cmd.Wait() // how it ended shows in what it left
		close(f.ended)
	}()
	return nil
}

// Pid is the child's process id.
func (f *FS) Pid() int { return f.cmd.Process.Pid }

// Close unmounts, ends the child, by force if it does not end by itself, and removes what is ours. Processes that still use the mount get errors from
// here on. The context shortens the wait. The second call returns what the first did.
func (f *FS) Close(ctx context.Context) error {
	f.once.Do(func() { f.err = f.close(ctx) })
	return f.err
}

func (f *FS) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	// An error here is the child's death, or a call that hangs: both are dealt with below.
	_, _ = f.call(ctx, request{Verb: verbClose})
	errs := []error{ignoreClosed(f.conn.Close())}
	select {
	case <-f.ended:
	case <-ctx.Done():
		if err := f.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			errs = append(errs, fmt.Errorf("kill the child: %w", err))
		}
		<-f.ended
	}
	errs = append(errs, detach(f.Mountpoint), f.removeBacking())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("unmount %s: %w", f.Mountpoint, err)
	}
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (f *FS) removeBacking() error {
	if f.backing == "" {
		return nil
	}
	return os.RemoveAll(f.backing)
}

// detach takes away our mount at a place, if there is one, without waiting for who uses it.
func detach(mountpoint string) error {
	for {
		mounted, err := isMounted(mountpoint)
		if err != nil || !mounted {
			return err
		}
		if err := unix.Unmount(mountpoint, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return os.NewSyscallError("umount", err)
		}
	}
}

// isMounted looks for our mount in the kernel's list, which asks nothing of the file system itself: one whose server is dead or hangs would never answer.
func isMounted(mountpoint string) (bool, error) {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(list)) {
		// proc_pid_mountinfo(5): the fifth field is the place, and the type comes after a lone hyphen.
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if len(fields) > 4 && unescape(fields[4]) == mountpoint && strings.HasPrefix(after, fsType+" ") {
			return true, nil
		}
	}
	return false, nil
}

// unescape undoes the kernel's \040 for blanks and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// lastWords keeps the end of what the child says on its standard error.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

func (w *lastWords) Write(p []byte) (int, error) {
	const enough = 8 << 10
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, p...)
	w.text = w.text[max(len(w.text)-enough, 0):]
	return len(p), nil
}

// after is what was said, on a line of its own.
func (w *lastWords) after() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := bytes.TrimSpace(w.text)
	if len(text) == 0 {
		return ""
	}
	return "\n" + string(text)
}
