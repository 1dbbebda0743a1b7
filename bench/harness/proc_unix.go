//go:build unix

package harness

import (
	"errors"
	"os/exec"
	"syscall"
)

// ownGroup makes a command the leader of a process group of its own, so that a terminal's Ctrl-C does not reach it and a kill takes its children too.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// lowerPriority makes all threads of a process group, and those that they will start, give way to others.
func lowerPriority(pgid, nice int) error {
	if nice == 0 {
		return nil
	}
	if err := syscall.Setpriority(syscall.PRIO_PGRP, pgid, nice); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// killGroup ends a process group. A group that is gone already is no error.
func killGroup(pgid int) error { return signalGroup(pgid, syscall.SIGKILL) }

// stopGroup asks a process group to end by itself.
func stopGroup(pgid int) error { return signalGroup(pgid, syscall.SIGTERM) }

// pauseGroup stops a process group where it stands, resumeGroup lets it go on.
func pauseGroup(pgid int) error  { return signalGroup(pgid, syscall.SIGSTOP) }
func resumeGroup(pgid int) error { return signalGroup(pgid, syscall.SIGCONT) }

func signalGroup(pgid int, sig syscall.Signal) error {
	if pgid <= 1 {
		return errors.New("refusing to signal a process group that is not a child's")
	}
	if err := syscall.Kill(-pgid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
