package versus

import (
	"strings"
	"time"

	"floodproof/reports/ledger"
)

// process adds up the processor time of one name over its lives: it is killed and comes back, and begins at 0 again.
type process struct{ total, last float64 }

func (p *process) read(seconds float64) {
	if seconds < p.last {
		p.last = 0
	}
	p.total += seconds - p.last
	p.last = seconds
}

// residents adds up the memory of each side at one reading and keeps the highest sums.
type residents struct {
	at       time.Duration
	now, top map[string]float64
}

func (r *residents) read(at time.Duration, side string, bytes float64) {
	if r.now == nil || r.at != at {
		r.at, r.now = at, map[string]float64{}
	}
	if r.top == nil {
		r.top = map[string]float64{}
	}
	r.now[side] += bytes
	r.top[side] = max(r.top[side], r.now[side])
}

// sideOf is whose process a gauge is about: "pipeline", "runner" or, with any other name, "broker".
func sideOf(name string) string {
	switch {
	case strings.HasPrefix(name, "receiver-"), strings.HasPrefix(name, "worker-"):
		return "pipeline"
	case name == "runner":
		return "runner"
	default:
		return "broker"
	}
}

func (c *collector) sample(s *ledger.Sample) {
	gauge, name, _ := strings.Cut(s.Name, ":")
	switch gauge {
	case "cpu":
		p := c.processes[name]
		if p == nil {
			p = &process{}
			c.processes[name] = p
		}
		p.read(s.Value)
	case "rss":
		c.resident.read(s.At, sideOf(name), s.Value)
	}
}

// resources adds processor time and memory to the facts.
func (c *collector) resources(f *Facts) {
	cpu := map[string]float64{}
	for name, p := range c.processes {
		cpu[sideOf(name)] += p.total
	}
	read := func(m map[string]float64, side string, unit float64) *float64 {
		v, ok := m[side]
		if !ok {
			return nil
		}
		return new(v / unit)
	}
	f.BrokerCPUS, f.PipelineCPUS, f.RunnerCPUS = read(cpu, "broker", 1), read(cpu, "pipeline", 1), read(cpu, "runner", 1)
	top := c.resident.top
	f.BrokerMB, f.PipelineMB, f.RunnerMB = read(top, "broker", 1e6), read(top, "pipeline", 1e6), read(top, "runner", 1e6)
}
