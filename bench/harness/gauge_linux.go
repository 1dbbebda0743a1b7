package harness

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/shirou/gopsutil/v4/process"
)

// memoryOf is the memory of a process in bytes: its proportional set size, in which a page that n processes share counts an n-th. The sessions of PostgreSQL share
// most of theirs, and the sum of their resident sets would be several times what the machine has lost.
func memoryOf(p *process.Process) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.Pid))
	if err == nil {
		for line := range bytes.Lines(text) {
			rest, ok := bytes.CutPrefix(line, []byte("Pss:"))
			if !ok {
				continue
			}
			if kb, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 64); err == nil {
				return kb * 1024
			}
		}
	}
	return residentOf(p)
}
