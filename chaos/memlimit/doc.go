// Package memlimit puts a limit on the memory of a running process, so that the kernel ends it when it asks for more.
//
//	l, err := memlimit.Set(pid, "floodproof-worker-1", 16<<20)  // 16 MiB more than it has now
//	... the process takes memory until it is gone ...
//	err = l.Remove()
//
// # Cgroups
//
// Where a memory cgroup can be made, the process is moved to one of its own. What it has already stays with the group that it came from; only what it takes from then on counts, so that the
// limit is the room that it still has. Beyond it the kernel's OOM killer sends SIGKILL, as in a container that has used up its memory. Both versions of cgroups do
// that (https://docs.kernel.org/admin-guide/cgroup-v2.html and .../cgroup-v1/memory.html, read December 2026). The group is made below the one in which the
// caller is, or, with version 2, the nearest above it that hands the memory controller to its children; no setting of an existing group is changed.
//
// # Resource limits
//
// Where there is no such group, RLIMIT_DATA is set (prlimit(2)), which needs no rights beyond those of the process's user. The kernel then refuses memory instead of killing: a program that
// cannot go on without ends itself, Go's with "out of memory" and exit status 2. A process that only ever uses again what it has is not ended by this limit; it must ask for more.
//
// Note: RLIMIT_AS was rejected: Go reserves address space in pieces of 64 MiB that cost nothing, and is stopped by their number and not by its memory. RLIMIT_RSS has no effect since
// Linux 2.4.30 (getrlimit(2)).
package memlimit
