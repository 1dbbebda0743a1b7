package verdict

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// Schema is the version of verdict.json that this package writes.
const Schema = 1

// Judge reads a ledger of size bytes and answers. Size serves the report only; 0 means not known.
//
// The error is for what is no ledger at all; there is no verdict then. A ledger that was cut or damaged is judged as far as it goes, and never passes. If r is an
// io.ReadSeeker, it is read a second time, from where it was, when a finding names events; else their ids are kept in memory meanwhile (about 50 bytes an event
// more). A million events take about 60 MB.
func Judge(r io.Reader, size int64) (*Verdict, error) {
	h, err := fold(r)
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	return h.verdict(size)
}

// JudgeFile judges the ledger in a file.
func JudgeFile(path string) (*Verdict, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	return Judge(f, info.Size())
}

// verdict asks every invariant and writes the answers down.
func (h *History) verdict(size int64) (*Verdict, error) {
	v, err := h.report(size)
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	v.Outcome = Pass
	for _, inv := range invariantsOf(h) {
		f := check(inv, h)
		v.Findings = append(v.Findings, f)
		v.Outcome = Merge(v.Outcome, f.Outcome)
	}
	if v.Interrupted {
		v.Outcome = Merge(v.Outcome, Unknown)
	}
	return v, nil
}

// report is the verdict without its findings. Nothing in it is nil that has a key of its own.
func (h *History) report(size int64) (*Verdict, error) {
	env := h.header.Env
	if env.BackendSettings == nil {
		env.BackendSettings = map[string]string{}
	}
	envText, err := json.Marshal(env)
	if err != nil {
		return nil, fmt.Errorf("write env: %w", err)
	}
	hd := h.header
	v := &Verdict{
		Schema: Schema, Version: hd.Floodproof, RunID: hd.RunID, Scenario: hd.Scenario, Backend: hd.Backend, Durability: hd.Durability, Seed: hd.Seed,
		StartedAt: hd.StartedAt.UTC().Format(time.RFC3339Nano), DurationS: seconds(h.lastSeen),
		Target:     Target{Kind: hd.Target.Kind, Name: hd.Target.Name, Observer: hd.Target.Observer},
		Counts:     h.counts,
		ByProvider: h.providerLines(), Segments: h.segmentLines(), Faults: h.faultLines(), Findings: []Finding{},
		LatencyMS: Latencies{
			Ack: h.dist.ack.latency(), AckAll: h.dist.ackAll.latency(), Effect: h.dist.effect.latency(),
			Service: h.dist.service.latency(), Lag: h.dist.lag.latency(),
		},
		Rates:     h.dist.rates,
		Harness:   Harness{Late: h.dist.late, LateP99MS: h.dist.lateP99, Blocked: h.dist.blocked, Notes: h.remarks()},
		Resources: h.resources(size),
		Env:       envText,
	}
	if h.end != nil {
		v.Interrupted = h.end.Interrupted
		v.DurationS = h.end.At.Seconds()
		v.Harness.Skipped, v.Harness.ClockJumps = int64(min(h.end.Skipped, forever)), int64(h.end.ClockJumps)
	}
	return v, nil
}

// providerLines has a line for every provider of the header, also for one that sent nothing.
func (h *History) providerLines() map[string]Provider {
	lines := make(map[string]Provider, len(h.header.Providers))
	for i, p := range h.header.Providers[:min(len(h.header.Providers), len(h.byProvider))] {
		c := h.byProvider[i]
		line := Provider{Events: c.events, Acked: c.acked, Applied: c.applied, Lost: c.lost}
		if r := h.dist.ackBy[i]; r != nil {
			line.AckP99MS = r.latency().P99
		}
		lines[p.Name] = line
	}
	return lines
}

// segmentLines has a line for every segment of the header that began.
func (h *History) segmentLines() []Segment {
	lines := []Segment{}
	for i, s := range h.header.Segments {
		if i > 255 || h.played[uint8(i)] == nil || h.played[uint8(i)].from < 0 {
			continue
		}
		p := h.played[uint8(i)]
		until := p.until
		if until < p.from {
			until = max(h.lastSeen, p.from)
		}
		lines = append(lines, Segment{Name: s.Name, Scale: s.Scale, FromS: h.sinceFirst(p.from), UntilS: h.sinceFirst(until), Gated: s.Gated})
	}
	return lines
}

func (h *History) resources(size int64) Resources {
	var r Resources
	if h.end != nil {
		e := h.end.Resources
		r = Resources{ReceiverRSSMB: e.ReceiverRSSMB, WorkerRSSMB: e.WorkerRSSMB, RunnerRSSMB: e.RunnerRSSMB, DiskBytes: e.DiskBytes}
	}
	if size > 0 && h.counts.Events > 0 {
		r.LedgerBytesPerEvent = new(float64(size) / float64(h.counts.Events))
	}
	return r
}

// remarks are the notes of the run and what the judge has to add. Never nil.
func (h *History) remarks() []string {
	out := append([]string{}, h.notes.texts...)
	if more := h.notes.total - int64(len(h.notes.texts)); more > 0 {
		out = append(out, fmt.Sprintf("%d more notes in the ledger", more))
	}
	out = append(out, h.dist.notes()...)
	add := func(is bool, format string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	add(h.early > 0, "%d attempts began before they were due and count as begun when due", h.early)
	add(h.end != nil && h.end.Interrupted, "the run was interrupted: what there is was judged, and can at best be unknown")
	add(h.end != nil && !h.end.DeadLettersListed, "the target showed no dead-letter list, so that no dead letter counts")
	add(h.deadMismatched > 0, "%d dead letters show another payload than was sent, or none, and prove nothing", h.deadMismatched)
	return out
}

// Write writes the verdict as verdict.json: indented, with a newline at the end.
func (v *Verdict) Write(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}
