//go:build unix

package container

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps the helper out of the terminal's group: a Ctrl-C ends the program that it works for, and then its input.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid = true
}
