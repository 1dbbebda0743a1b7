package server

import (
	"os/exec"
	"syscall"
)

// tie has a command's process killed when the thread that starts it ends (PR_SET_PDEATHSIG in https://man7.org/linux/man-pages/man2/prctl.2.html, read December 2026). The threads of
// a Go program end with the program, but for those that a goroutine has locked and never lets go.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
