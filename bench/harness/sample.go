package harness

import (
	"context"
	"os"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/reports/ledger"
)

const (
	// sampleEvery is the pause between two readings of memory, CPU and depth.
	sampleEvery = time.Second
	// clockJump is a step of the wall clock against the monotonic one that is worth a note.
	clockJump = 250 * time.Millisecond
)

// sampler reads gauges beside the run.
type sampler struct {
	run       *run
	peaks     map[string]float64 // highest resident set in bytes by role
	jumps     uint32
	wallSkew  time.Duration
	processes map[int32]*process.Process
}

func newSampler(r *run) *sampler {
	return &sampler{run: r, peaks: map[string]float64{}, processes: map[int32]*process.Process{}}
}

// loop samples until ctx ends.
func (s *sampler) loop(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s.once(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *sampler) once(ctx context.Context) {
	at := time.Since(s.run.start)
	put := func(name string, value float64) { s.run.ledger.Sample(ledger.Sample{At: at, Name: name, Value: value}) }
	if depth := s.run.target.depth(ctx); depth >= 0 {
		put("depth", float64(depth))
	}
	for _, c := range s.run.fleet.all() {
		if pid := c.pid(); pid != 0 {
			s.process(int32(pid), c.role, c.name, put)
		}
	}
	s.process(int32(os.Getpid()), "runner", "runner", put)
	s.clock(at)
	s.run.ledger.Flush()
}

func (s *sampler) process(pid int32, role, name string, put func(string, float64)) {
	p := s.processes[pid]
	if p == nil {
		var err error
		if p, err = process.NewProcess(pid); err != nil {
			return // it just ended
		}
		s.processes[pid] = p
	}
	if mem, err := p.MemoryInfo(); err == nil {
		put("rss:"+name, float64(mem.RSS))
		s.peaks[role] = max(s.peaks[role], float64(mem.RSS))
	}
	if cpu, err := p.Times(); err == nil {
		put("cpu:"+name, cpu.User+cpu.System)
	}
}

// clock compares the wall clock with the monotonic one.
func (s *sampler) clock(at time.Duration) {
	skew := time.Now().Round(0).Sub(s.run.start.Round(0)) - at
	if step := skew - s.wallSkew; step.Abs() > clockJump {
		s.jumps++
		s.run.note("the wall clock jumped by %s", step.Round(time.Millisecond))
	}
	s.wallSkew = skew
}

// fill writes what was read into the end record. The sampler's loop has ended.
func (s *sampler) fill(end *ledger.End) {
	end.ClockJumps = s.jumps
	end.Resources.ReceiverRSSMB = s.megabytes("receiver")
	end.Resources.WorkerRSSMB = s.megabytes("worker")
	end.Resources.RunnerRSSMB = s.megabytes("runner")
}

// megabytes is the highest reading of a role in 10^6 bytes, nil without one.
func (s *sampler) megabytes(role string) *float64 {
	peak, ok := s.peaks[role]
	if !ok {
		return nil
	}
	mb := peak / 1e6
	return &mb
}
