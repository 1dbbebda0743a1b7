package cutfs

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// pollEvery is how often is looked whether a thread that waits was killed.
const pollEvery = 2 * time.Millisecond

// gate holds up operations once the power is off.
type gate struct {
	freeze, open   sync.Once
	frozen, opened chan struct{}
}

func newGate() *gate {
	return &gate{frozen: make(chan struct{}), opened: make(chan struct{})}
}

func (g *gate) close() { g.freeze.Do(func() { close(g.frozen) }) }

// letGo ends all waits: the mount is about to go.
func (g *gate) letGo() { g.open.Do(func() { close(g.opened) }) }

func (g *gate) isFrozen() bool {
	select {
	case <-g.frozen:
		return true
	default:
		return false
	}
}

// wait returns when the thread that asks can see no answer any more: it was sent SIGKILL, it is the kernel itself, or the mount goes.
//
// Note: the kernel tells of an interrupt for any signal, and only once for each request, so that it says nothing about SIGKILL, which has to be looked for. A request
// that is never answered would keep even a killed process.
func (g *gate) wait(thread uint32) {
	if thread == 0 {
		return
	}
	look := time.NewTicker(pollEvery)
	defer look.Stop()
	for !isKilled(thread) {
		select {
		case <-g.opened:
			return
		case <-look.C:
		}
	}
}

// isKilled reports that a thread is gone or has a SIGKILL pending.
func isKilled(thread uint32) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return true
	}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		// proc_pid_status(5): a mask of signals, in hexadecimal.
		mask, ok := bytes.CutPrefix(s.Bytes(), []byte("SigPnd:"))
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(mask)), 16, 64)
		return err != nil || n&(1<<(unix.SIGKILL-1)) != 0
	}
	return true
}
