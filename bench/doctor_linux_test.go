package bench

import (
	"testing"
	"testing/fstest"
)

func TestCgroup(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	tests := []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{"none", fstest.MapFS{}, "no limit"},
		{"version 2, no limit", fstest.MapFS{
			"proc/self/cgroup": file("0::/user.slice\n"), "sys/fs/cgroup/user.slice/cpu.max": file("max 100000\n"), "sys/fs/cgroup/user.slice/memory.max": file("max\n"),
		}, "no limit"},
		{"version 2", fstest.MapFS{
			"proc/self/cgroup": file("0::/job\n"), "sys/fs/cgroup/job/cpu.max": file("150000 100000\n"), "sys/fs/cgroup/job/memory.max": file("2147483648\n"),
		}, "processors: 1.5, memory: 2.0 GB"},
		{"version 2 in a container", fstest.MapFS{"proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("1073741824\n")}, "memory: 1.0 GB"},
		{"version 1, no limit", fstest.MapFS{
			"proc/self/cgroup": file("4:memory:/\n3:cpu,cpuacct:/\n"), "sys/fs/cgroup/cpu/cpu.cfs_quota_us": file("-1\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, "no limit"},
		{"version 1", fstest.MapFS{
			"proc/self/cgroup": file("4:memory:/job\n3:cpu,cpuacct:/job\n"), "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": file("50000\n"),
			"sys/fs/cgroup/cpu/job/cpu.cfs_period_us": file("100000\n"), "sys/fs/cgroup/memory/job/memory.limit_in_bytes": file("536870912\n"),
		}, "processors: 0.5, memory: 0.5 GB"},
	}
	for _, tt := range tests {
		got := cgroup(tt.files)
		if got.Found != tt.want || (got.State == healthy) != (tt.want == "no limit") {
			t.Errorf("%s: %s, %q, want %q", tt.name, got.State, got.Found, tt.want)
		}
	}
}
