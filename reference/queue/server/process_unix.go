//go:build unix

package server

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

const (
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// ownGroup makes a command the leader of a new process group.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}

// signalGroup signals every process of a group, and those that its leader has started and that have left the group: each session of PostgreSQL is
// one. A process that is gone already is no error.
func signalGroup(pgid int, signal syscall.Signal) error {
	strays := descendants(int32(pgid)) // before the leader is gone, who tells
	errs := []error{syscall.Kill(-pgid, signal)}
	for _, pid := range strays {
		errs = append(errs, syscall.Kill(int(pid), signal))
	}
	for i, err := range errs {
		if errors.Is(err, syscall.ESRCH) {
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// endGroup ends what is left of a group whose leader is gone: a server that ended by itself, while it started on a disk that failed, say, leaves what was started beside it.
func endGroup(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }

// awaitPaused returns when a process stands still: SIGSTOP is sent at once, but takes effect when one of the threads is next looked after, and until then the process
// may answer another request. One that is gone, or that no one tells about, is not waited for, and none for more than a second.
func awaitPaused(pid int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	look := time.NewTicker(100 * time.Microsecond)
	defer look.Stop()
	for ctx.Err() == nil {
		p, err := process.NewProcess(int32(pid))
		if err != nil {
			return nil
		}
		if status, err := p.Status(); err != nil || slices.Contains(status, process.Stop) {
			return nil
		}
		<-look.C
	}
	return errors.New("pause: the process still runs a second after SIGSTOP")
}

// descendants are the processes that a process has started, and those that they have.
func descendants(pid int32) (pids []int32) {
	p, err := process.NewProcess(pid)
	if err != nil {
		return nil
	}
	children, err := p.Children()
	if err != nil {
		return nil
	}
	for _, c := range children {
		pids = append(append(pids, c.Pid), descendants(c.Pid)...)
	}
	return pids
}

// killIn ends the processes that work in a directory, or below it, which is nobody else's. A session of PostgreSQL that was being started while the others were killed
// is nobody's child any more, and one in the middle of a statement notices that late.
func killIn(dir string) {
	all, err := process.Processes()
	if err != nil {
		return
	}
	for _, p := range all {
		if cwd, err := p.Cwd(); err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/")) {
			_ = p.Kill() // it may have ended meanwhile
		}
	}
}
