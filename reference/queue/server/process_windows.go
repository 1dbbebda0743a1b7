package server

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Windows cannot stop a process where it stands by a signal.
const (
	pauseSignal  = syscall.Signal(-1)
	resumeSignal = syscall.Signal(-2)
)

func ownGroup(*exec.Cmd) {}

// signalGroup ends the process; Windows knows neither groups nor other signals.
func signalGroup(pid int, signal syscall.Signal) error {
	if signal != syscall.SIGKILL && signal != syscall.SIGTERM {
		return errors.ErrUnsupported
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func killIn(string) {}

// endGroup does nothing: there are no groups.
func endGroup(int) {}

// awaitPaused is never needed: nothing is paused here.
func awaitPaused(int) error { return nil }
