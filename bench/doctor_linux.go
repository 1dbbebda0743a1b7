package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// filesNeeded is for the connections of the shipped scenarios: runner, receivers, workers and broker have one end each.
const filesNeeded = 4096

// platformChecks are what only this platform tells.
func platformChecks() []diagnosis {
	return []diagnosis{openFiles(), cgroup(os.DirFS("/"))}
}

func openFiles() diagnosis {
	d := diagnosis{Area: machineArea, Name: "open files", State: healthy}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		d.State, d.Found = limited, "not known: "+err.Error()
		return d
	}
	d.Found = fmt.Sprintf("%d a process", limit.Cur)
	if limit.Cur < filesNeeded {
		d.State, d.Means, d.Fix = limited, "too few for the connections of a busy day", fmt.Sprintf("ulimit -n %d", 16*filesNeeded)
	}
	return d
}

// cgroup looks for the limits of the control group of this process, version 2 or 1. Inside a container its own group is mounted at the top.
func cgroup(root fs.FS) diagnosis {
	d := diagnosis{Area: machineArea, Name: "cgroup", State: healthy, Found: "no limit"}
	v2, v1 := groupsOf(root)
	var found []string
	for _, dir := range []string{"sys/fs/cgroup" + v2, "sys/fs/cgroup"} {
		if quota, period, ok := strings.Cut(line(root, dir+"/cpu.max"), " "); ok && quota != "max" {
			found = append(found, "processors: "+share(quota, period))
		}
		if max := line(root, dir+"/memory.max"); max != "" && max != "max" {
			found = append(found, "memory: "+bytesOf(max))
		}
		if len(found) > 0 || v2 == "/" {
			break
		}
	}
	for _, at := range []string{v1["cpu"], ""} {
		dir := "sys/fs/cgroup/cpu" + at
		if quota := line(root, dir+"/cpu.cfs_quota_us"); quota != "" {
			if quota != "-1" {
				found = append(found, "processors: "+share(quota, line(root, dir+"/cpu.cfs_period_us")))
			}
			break
		}
	}
	for _, at := range []string{v1["memory"], ""} {
		if max := line(root, "sys/fs/cgroup/memory"+at+"/memory.limit_in_bytes"); max != "" {
			if len(max) < len("9223372036854771712") { // which is no limit
				found = append(found, "memory: "+bytesOf(max))
			}
			break
		}
	}
	if len(found) > 0 {
		d.State, d.Found, d.Means = limited, strings.Join(found, ", "), "what the whole run may use, brokers included"
	}
	return d
}

// groupsOf are the paths of this process's groups: that of version 2, and those of version 1 by controller.
func groupsOf(root fs.FS) (v2 string, v1 map[string]string) {
	v1 = map[string]string{}
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return "/", v1
	}
	v2 = "/"
	for entry := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(entry), ":", 3)
		if len(fields) != 3 || strings.Contains(fields[2], "..") {
			continue
		}
		path := strings.TrimSuffix(fields[2], "/")
		if fields[0] == "0" && path != "" {
			v2 = path
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			v1[controller] = path
		}
	}
	return v2, v1
}

// line is the first line of a small file, "" if there is none.
func line(root fs.FS, path string) string {
	text, err := fs.ReadFile(root, strings.TrimSuffix(strings.ReplaceAll(path, "//", "/"), "/"))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first)
}

func share(quota, period string) string {
	q, err := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err := errors.Join(err, err2); err != nil || p == 0 {
		return quota + " of " + period
	}
	return strconv.FormatFloat(q/p, 'f', -1, 64)
}

func bytesOf(text string) string {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return text
	}
	return gigabytes(n)
}

// networkNamespaces says whether a network below that of the machine can be made. The faults net.* need none: they are played by a proxy that any user may run.
func networkNamespaces() diagnosis {
	d := diagnosis{Area: faultArea, Name: "net.*", State: healthy, Found: "played by a proxy, which needs no rights"}
	var lacking []string
	if err := unshareNetwork(); err != nil {
		lacking = append(lacking, "network namespaces ("+err.Error()+")")
	}
	if _, err := exec.LookPath("iptables"); err != nil {
		if _, err := exec.LookPath("/usr/sbin/iptables"); err != nil {
			lacking = append(lacking, "iptables")
		}
	}
	if len(lacking) > 0 {
		d.Found += "; " + strings.Join(lacking, " and ") + " cannot be had, and are not needed"
	} else {
		d.Found += "; network namespaces and iptables are here too"
	}
	return d
}

// unshareNetwork makes a network namespace on a thread of its own, which ends with it.
func unshareNetwork() error {
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocks: the runtime ends the thread with the goroutine
		made <- unix.Unshare(unix.CLONE_NEWNET)
	}()
	return <-made
}

func clockSource() string {
	if source := line(os.DirFS("/"), "sys/devices/system/clocksource/clocksource0/current_clocksource"); source != "" {
		return source
	}
	return "unknown source"
}
