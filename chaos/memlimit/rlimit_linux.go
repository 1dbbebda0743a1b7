package memlimit

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// canLimit reports why the limits of a process cannot be read, and so not be set.
func canLimit(pid int) error {
	var now unix.Rlimit
	return unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &now)
}

// setRLimit limits the private writable memory of a process, which has no group to be moved to. The hard limit stays, so that the soft one can be put back without any rights.
func setRLimit(pid int, room int64) (*Limit, error) {
	has, err := dataOf(pid)
	if err != nil {
		return nil, err
	}
	var before unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &before); err != nil {
		return nil, fmt.Errorf("limit process %d by %s: %w", pid, RLimit, os.NewSyscallError("prlimit", err))
	}
	now := before
	now.Cur = min(uint64(has+room), before.Cur)
	if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &now, nil); err != nil {
		return nil, fmt.Errorf("limit process %d by %s: %w", pid, RLimit, os.NewSyscallError("prlimit", err))
	}
	return &Limit{Means: RLimit, lift: func() error {
		if err := unix.Prlimit(pid, unix.RLIMIT_DATA, &before, nil); err != nil && err != unix.ESRCH {
			return fmt.Errorf("lift the limit of process %d: %w", pid, os.NewSyscallError("prlimit", err))
		}
		return nil
	}}, nil
}

// dataOf is how much counts against RLIMIT_DATA, in bytes: VmData of proc_pid_status(5).
func dataOf(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "VmData:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("read the memory of process %d: the kernel does not say it", pid)
}
