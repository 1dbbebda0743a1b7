package harness

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"floodproof/bench/node"
	"floodproof/reports"
	"floodproof/reports/verdict"
)

// report judges the closed ledger in a run's directory and writes everything that people and programs read.
func report(out, dir string) (*Result, error) {
	giveBack() // what the run needed
	v, err := verdict.JudgeFile(filepath.Join(dir, "ledger"))
	if err != nil {
		return nil, err
	}
	if err := WriteVerdict(dir, v); err != nil {
		return nil, err
	}
	giveBack() // what the judge needed
	full, err := reports.Load(dir)
	if err != nil {
		return nil, err
	}
	if err := reports.WriteAll(dir, full); err != nil {
		return nil, err
	}
	return &Result{Dir: dir, Verdict: v}, pointLatest(out, dir)
}

// giveBack returns to the machine what is not needed any more. A runner has one part of its work after the other, and only the largest is to be its size.
func giveBack() {
	runtime.GC() // what has a finalizer, or lies in a pool, and all that it points to, outlives one collection
	debug.FreeOSMemory()
	node.ForgetStart()
}

// WriteVerdict writes verdict.json into a run's directory.
func WriteVerdict(dir string, v *verdict.Verdict) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write verdict.json: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, "verdict.json"), append(text, '\n'), 0o644)
}

// pointLatest makes OUT/latest a link to the newest run.
func pointLatest(out, dir string) error {
	link, tmp := filepath.Join(out, "latest"), filepath.Join(out, ".latest-"+randomID(6))
	if err := os.Symlink(filepath.Base(dir), tmp); err != nil {
		return fmt.Errorf("point %s to the newest run: %w", link, err)
	}
	return os.Rename(tmp, link)
}

// status is the run now, for a live view.
func (r *run) status() Status {
	p, t := r.gen.Progress(), r.books.Tally()
	segment := int(r.segment.Load())
	s := Status{
		Phase: Phase(r.phase.Load()), Scenario: r.plan.Scenario.Name, Backend: r.plan.Backend,
		Segment: r.segmentName(segment), Scale: r.cast.tailScale(), Day: p.DayTime,
		Elapsed: time.Since(r.start), Planned: int64(r.plan.Scenario.Load.Events),
		Tally: t, InFlight: int64(p.InFlight), Blocked: int64(p.Blocked), Retries: int64(p.PendingRetries),
		Faults: r.timeline.Current(),
	}
	if list := r.plan.Scenario.Segments; segment < len(list) {
		s.Scale = list[segment].Scale
	}
	s.Left = r.left(p.DayTime)
	return s
}

// left estimates the real time until the end: what is not played yet, and the least that a drain takes.
func (r *run) left(day time.Duration) time.Duration {
	if Phase(r.phase.Load()) > Running {
		return 0
	}
	left := linger
	for _, seg := range r.plan.Scenario.Segments {
		if seg.Until > day {
			left += time.Duration(float64(seg.Until-max(seg.From, day)) / seg.Scale)
		}
	}
	return left
}
