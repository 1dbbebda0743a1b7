//go:build linux || darwin

package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// awaitPostgresOrphans returns when no process of an earlier server is attached to its shared memory, or after a while. Each process of PostgreSQL makes itself the
// leader of a group of its own, so that a signal to the server's group reaches the first one only; the others end by themselves when they miss it, and until
// then no server starts on their data. Where the memory is stands in the seventh line of postmaster.pid.
func awaitPostgresOrphans(ctx context.Context, data string) error {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 7 {
		return nil
	}
	fields := strings.Fields(lines[6])
	if len(fields) != 2 {
		return nil
	}
	id, err := strconv.Atoi(fields[1])
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	pause := time.NewTicker(5 * time.Millisecond)
	defer pause.Stop()
	for tick := 0; ; tick++ {
		if tick%100 == 99 {
			killIn(data) // one that was started while the others were killed, and has not noticed
		}
		var memory unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(id, unix.IPC_STAT, &memory); err != nil || memory.Nattch == 0 {
			return nil // it is gone, or nobody's
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return nil // the server will say what is in its way
		}
	}
}
