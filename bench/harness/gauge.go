package harness

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// gaugeEvery is the pause between two readings of a broker. Each walks over all processes of the machine once.
const gaugeEvery = 2 * time.Second

// BrokerGauge reads the processor time and the memory of a queue's server beside a run: of all processes that this one has started, and that those have, but for the parts
// of the pipeline itself. A server of the user's own is not seen. It serves one run of a process that makes one run at a time.
//
// What a process used after its last reading before it ended is missing, at most two seconds of it.
type BrokerGauge struct {
	mu    sync.Mutex
	lives map[life]float64 // processor seconds
	peak  float64          // bytes
}

// life is one process; numbers are used again.
type life struct {
	pid     int32
	created int64
}

// Run reads until ctx ends, and once more then.
func (g *BrokerGauge) Run(ctx context.Context) {
	tick := time.NewTicker(gaugeEvery)
	defer tick.Stop()
	for {
		g.read()
		select {
		case <-tick.C:
		case <-ctx.Done():
			g.read()
			return
		}
	}
}

// CPUSeconds is the processor time so far, nil if no broker was seen. It may be called at any time.
func (g *BrokerGauge) CPUSeconds() *float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lives) == 0 {
		return nil
	}
	sum := 0.0
	for _, seconds := range g.lives {
		sum += seconds
	}
	return &sum
}

// PeakMB is the highest memory at one reading, in 10^6 bytes, nil if no broker was seen. Memory that its processes share counts once where the system tells.
func (g *BrokerGauge) PeakMB() *float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lives) == 0 {
		return nil
	}
	mb := g.peak / 1e6
	return &mb
}

func (g *BrokerGauge) read() {
	bytes := 0.0
	for _, p := range brokerProcesses(int32(os.Getpid())) {
		created, err := p.CreateTime()
		if err != nil {
			continue // it just ended
		}
		if cpu, err := p.Times(); err == nil {
			g.note(life{p.Pid, created}, cpu.User+cpu.System)
		}
		bytes += memoryOf(p)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peak = max(g.peak, bytes)
}

func (g *BrokerGauge) note(l life, seconds float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lives == nil {
		g.lives = map[life]float64{}
	}
	g.lives[l] = max(g.lives[l], seconds)
}

// brokerProcesses are the descendants of root that belong to a broker.
func brokerProcesses(root int32) []*process.Process {
	all, err := process.Processes()
	if err != nil {
		return nil
	}
	children := map[int32][]*process.Process{}
	for _, p := range all {
		if parent, err := p.Ppid(); err == nil {
			children[parent] = append(children[parent], p)
		}
	}
	var found []*process.Process
	for _, p := range children[root] {
		if words, err := p.CmdlineSlice(); err == nil && isBroker(words) {
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ { // it grows by those that found ones have started
		found = append(found, children[found[i].Pid]...)
	}
	return found
}

// isBroker tells a broker from the other processes that a run starts, by its command line: those are this program as `node ROLE`. A broker that is built in is that too.
func isBroker(words []string) bool {
	if len(words) < 3 || words[1] != "node" {
		return len(words) > 0 && filepath.Base(words[0]) != "fusermount3"
	}
	return !slices.Contains([]string{"receiver", "worker", "guard", "cutfs"}, words[2])
}

// residentOf is the resident set of a process in bytes, 0 if it just ended.
func residentOf(p *process.Process) float64 {
	m, err := p.MemoryInfo()
	if err != nil {
		return 0
	}
	return float64(m.RSS)
}
