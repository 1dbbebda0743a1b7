package versus

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// made is a verdict that nobody but these tests has measured.
type made struct {
	backend, scenario string
	seed              uint64
	outcome           verdict.Outcome
	ack99, effect99   float64
	samples           int64
	lost, twice       int64
	lateness          float64
	durability        string
	faults            []verdict.Fault
	findings          []verdict.Finding
	env               ledger.Env
	at                time.Duration
}

func machine() ledger.Env {
	fsync := 300.0
	return ledger.Env{CPUs: 2, Go: "go1.26", OS: "linux/amd64", FS: "ext4", FsyncUsP50: &fsync, Commit: "aaa", BackendVersion: "Engine 1.2", BackendSettings: map[string]string{"sync": "always"}}
}

func (m made) verdict(t testing.TB) *verdict.Verdict {
	t.Helper()
	if m.backend == "" {
		m.backend = "sqlite"
	}
	if m.scenario == "" {
		m.scenario = "compare"
	}
	if m.durability == "" {
		m.durability = "power-loss"
	}
	if m.env.CPUs == 0 {
		m.env = machine()
	}
	env, err := json.Marshal(m.env)
	if err != nil {
		t.Fatal(err)
	}
	noLoss := verdict.Finding{Invariant: "no-loss", Outcome: verdict.Pass, Observed: fmt.Sprintf("%d lost of 1000 acked", m.lost)}
	if m.lost > 0 {
		noLoss.Outcome = verdict.Fail
	}
	v := &verdict.Verdict{
		Schema: verdict.Schema, Version: "test", RunID: fmt.Sprintf("run-%s-%d", m.backend, m.at), Scenario: m.scenario, Backend: m.backend, Durability: m.durability, Seed: m.seed,
		Outcome: m.outcome, StartedAt: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC).Add(m.at).Format(time.RFC3339Nano),
		Target: verdict.Target{Kind: "reference", Name: "reference", Observer: "sink"},
		Counts: verdict.Counts{Events: 1000, Acked: 1000, Applied: 1000 - m.lost - m.twice, Lost: m.lost, Doubled: m.twice},
		Faults: m.faults, Findings: append([]verdict.Finding{noLoss}, m.findings...), Env: env,
	}
	if m.lost+m.twice > 0 {
		v.Outcome = verdict.Fail
	}
	if m.lateness > 0 {
		v.Harness.LateP99MS = &m.lateness
	}
	v.LatencyMS.Ack, v.LatencyMS.Effect = latency(m.samples, m.ack99), latency(m.samples, m.effect99)
	return v
}

func latency(samples int64, p99 float64) verdict.Latency {
	if samples == 0 || p99 == 0 {
		return verdict.Latency{}
	}
	return verdict.Latency{Count: samples, P50: new(p99 / 4), P90: new(p99 / 2), P99: new(p99), P999: new(p99 * 2), Max: new(p99 * 3)}
}

// noise is how much a measurement of the same thing differs from the one before on a shared machine.
func noise(r *rand.Rand) float64 { return math.Exp(0.08 * r.NormFloat64()) }

// series are runs of the same thing, slower by a factor.
func series(t testing.TB, r *rand.Rand, runs int, slower float64) []*verdict.Verdict {
	t.Helper()
	var list []*verdict.Verdict
	for i := range runs {
		list = append(list, made{outcome: verdict.Pass, ack99: 10 * slower * noise(r), effect99: 50 * slower * noise(r), samples: 20_000, at: time.Duration(i) * time.Minute}.verdict(t))
	}
	return list
}

// write puts verdicts into the directories of runs below one.
func write(t testing.TB, dir string, runs []*verdict.Verdict) string {
	t.Helper()
	for i, v := range runs {
		run := filepath.Join(dir, fmt.Sprintf("run-%02d", len(runs)-i)) // the names' order is not that of time
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(run, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, verdictFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
