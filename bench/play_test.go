package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"floodproof/reports/verdict"
)

// played is what a run came to that has ended.
type played struct {
	verdict.Verdict
	status int
	stderr string
}

// play runs floodproof run with a pipeline that is broken in one way, or in none ("").
func play(t *testing.T, mutant string, args ...string) (p played) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "floodproof", append([]string{"run", "--json", "--out", t.TempDir()}, args...)...)
	cmd.Env = append(os.Environ(), mutantVariable+"="+mutant)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	p.status, p.stderr = cmd.ProcessState.ExitCode(), stderr.String()
	if bad := json.Unmarshal(stdout.Bytes(), &p.Verdict); bad != nil {
		t.Fatalf("no verdict: %v, %v\n%s", err, bad, p.stderr)
	}
	return p
}

// fails reports whether an invariant failed.
func (p played) fails(invariant string) bool {
	return slices.ContainsFunc(p.Findings, func(f verdict.Finding) bool { return f.Invariant == invariant && f.Outcome == verdict.Fail })
}

// findings are all of them, a line each.
func (p played) findings() string {
	var out strings.Builder
	for _, f := range p.Findings {
		fmt.Fprintf(&out, "%s %s: %s\n", f.Invariant, f.Outcome, f.Observed)
	}
	return out.String()
}

// crashTest is a crashDay with faults, on a mutant or ("") the pipeline as it is, and the invariant that must fail; "" is that the day must pass.
type crashTest struct {
	mutant string
	chaos  []string
	fails  string
}

func (c crashTest) run(t *testing.T) {
	t.Helper()
	p := play(t, c.mutant, writeCrashDay(t, t.TempDir(), c.chaos))
	for _, f := range p.Faults {
		if f.Status != "done" {
			t.Errorf("%s on %s is %s, want done; notes: %q\n%s", f.Fault, f.Target, f.Status, p.Harness.Notes, p.stderr)
		}
	}
	if c.fails == "" && p.Outcome != verdict.Pass || c.fails != "" && !p.fails(c.fails) {
		t.Errorf("outcome %s, want failed: %q; findings:\n%s", p.Outcome, c.fails, p.findings())
	}
}

// writeCrashDay writes crashDay with faults into a directory and returns the file.
func writeCrashDay(t *testing.T, dir string, chaos []string) string {
	t.Helper()
	day := filepath.Join(dir, "day.yaml")
	if err := os.WriteFile(day, fmt.Appendf(nil, crashDay, strings.Join(chaos, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return day
}
