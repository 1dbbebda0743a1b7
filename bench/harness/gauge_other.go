//go:build !linux

package harness

import "github.com/shirou/gopsutil/v4/process"

// memoryOf is the resident set of a process in bytes; what processes share counts for each.
func memoryOf(p *process.Process) float64 { return residentOf(p) }
