package memlimit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hierarchy is a tree of cgroups that knows of memory.
type hierarchy struct {
	means Means
	// root is where it is mounted, parents are the groups below which one may be made, the nearest first.
	root    string
	parents []string
	// limit is the file that takes the limit. A 0 in swap, which not every machine has, keeps the group from being swapped out instead.
	limit, swap string
}

// hierarchies are those that this process is in, version 2 first.
func hierarchies() []hierarchy {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return parseHierarchies(mounts, own)
}

// parseHierarchies reads the kernel's lists of mounts (proc_pid_mountinfo(5)) and of the groups of a process (cgroups(7)).
func parseHierarchies(mounts, own []byte) (list []hierarchy) {
	for lines := bufio.NewScanner(bytes.NewReader(mounts)); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) < 3 {
			continue
		}
		root := fields[4]
		switch {
		case kind[0] == "cgroup2":
			list = append(list, hierarchy{means: CgroupV2, root: root, parents: ancestors(root, groupOf(own, "")), limit: "memory.max", swap: "memory.swap.max"})
		case kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "memory"):
			list = append(list, hierarchy{means: CgroupV1, root: root, parents: []string{filepath.Join(root, groupOf(own, "memory"))}, limit: "memory.limit_in_bytes", swap: "memory.swappiness"})
		}
	}
	slices.SortStableFunc(list, func(a, b hierarchy) int { return strings.Compare(string(b.means), string(a.means)) })
	return list
}

// groupOf is the path of a process's group in the hierarchy of a controller, that of version 2 if it is empty: lines are "4:memory:/path" and "0::/path".
func groupOf(own []byte, controller string) string {
	for lines := bufio.NewScanner(bytes.NewReader(own)); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[1], ","), controller) {
			return parts[2]
		}
	}
	return "/"
}

// ancestors are a group's directory and those above it. In a version 2 hierarchy a group with processes in it has no children with controllers, but one above may.
func ancestors(root, group string) (dirs []string) {
	for {
		dirs = append(dirs, filepath.Join(root, group))
		if group == "/" || group == "." {
			return dirs
		}
		group = filepath.Dir(group)
	}
}

// make makes a group in which memory can be limited.
func (h hierarchy) make(name string) (string, error) {
	errs := []error{fmt.Errorf("%s: no group can be made", h.means)}
	for _, parent := range h.parents {
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			errs = append(errs, err)
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, h.limit), os.O_WRONLY, 0)
		if err == nil {
			return dir, f.Close()
		}
		errs = append(errs, err, removeGroup(dir))
	}
	return "", errors.Join(errs...)
}

func (h hierarchy) set(pid int, name string, room int64) (*Limit, error) {
	dir, err := h.make(name)
	if err != nil {
		return nil, err
	}
	home, err := h.groupOfProcess(pid)
	if err == nil {
		err = errors.Join(ignoreMissing(write(dir, h.swap, 0)), write(dir, h.limit, room), write(dir, "cgroup.procs", int64(pid)))
	}
	lift := func() error {
		// The process may be gone, and with it the reason to move it.
		if err := write(home, "cgroup.procs", int64(pid)); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return removeGroup(dir)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("limit process %d by %s: %w", pid, h.means, err), removeGroup(dir))
	}
	return &Limit{Means: h.means, Group: dir, lift: lift}, nil
}

// groupOfProcess is the directory of the group that a process is in.
func (h hierarchy) groupOfProcess(pid int) (string, error) {
	own, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	controller := ""
	if h.means == CgroupV1 {
		controller = "memory"
	}
	return filepath.Join(h.root, groupOf(own, controller)), nil
}

func write(dir, file string, n int64) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0) // with O_CREATE one that is missing would be a lack of rights
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(n, 10))
	return errors.Join(err, f.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

const (
	// removeWithin and removeEvery: a group is busy until the kernel has done with the process that was in it.
	removeWithin = 2 * time.Second
	removeEvery  = 5 * time.Millisecond
)

func removeGroup(dir string) error {
	for begin := time.Now(); ; time.Sleep(removeEvery) { //nolint:forbidigo // nobody tells when a group is empty
		err := os.Remove(dir)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Since(begin) > removeWithin {
			return fmt.Errorf("remove the cgroup: %w", err)
		}
	}
}

func (l *Limit) kills() (int, bool, error) {
	if l.Group == "" {
		return 0, false, nil
	}
	file := "memory.events"
	if l.Means == CgroupV1 {
		file = "memory.oom_control"
	}
	text, err := os.ReadFile(filepath.Join(l.Group, file))
	if err != nil {
		return 0, true, fmt.Errorf("read what the OOM killer did: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(n))
			return n, true, err
		}
	}
	return 0, false, nil // before Linux 4.13 it is not counted
}
