package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrap(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "\n"},
		{"one", "one\n"},
		{"one two three", "one two\n   three\n"},
		{"a-word-that-is-longer-than-the-line b", "a-word-that-is-longer-than-the-line\n   b\n"},
	}
	for _, tt := range tests {
		if got := wrap(tt.text, 3, 10); got != tt.want {
			t.Errorf("wrap %q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestDoctorsReport(t *testing.T) {
	r := doctorsReport{Backend: "sqlite", Runs: true, Findings: []diagnosis{
		{Area: backendArea, Name: "sqlite", State: healthy, Found: "embedded"},
		{Area: backendArea, Name: "rabbitmq", State: missing, Found: "not installed", Means: "not here, and no container either", Fix: "apt-get install rabbitmq-server"},
		{Area: machineArea, Name: "fsync", State: limited, Found: "p50 9ms", Means: "with that the latency limits of the shipped days cannot be held"},
	}}
	var got strings.Builder
	if err := r.print(&got); err != nil {
		t.Fatal(err)
	}
	want := `BACKENDS
  ok       sqlite             embedded
  missing  rabbitmq           not installed: not here, and no container either
                              $ apt-get install rabbitmq-server

MACHINE
  limited  fsync              p50 9ms: with that the latency limits of the
                              shipped days cannot be held

This machine can run floodproof. Start with: floodproof run smoke
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("report differs (-want +got):\n%s", diff)
	}
}

// TestDoctorHere asks about this machine: every line fits, and the JSON says the same.
func TestDoctorHere(t *testing.T) {
	var text, line, stderr bytes.Buffer
	for out, args := range map[*bytes.Buffer][]string{&text: {"doctor"}, &line: {"doctor", "--json"}} {
		p := &Program{Args: args, Arg0: "floodproof", Stdout: out, Stderr: &stderr}
		if got := p.Main(t.Context()); got != ExitPass {
			t.Fatalf("%q: status %d\n%s%s", args, got, out, &stderr)
		}
	}
	for l := range strings.Lines(text.String()) {
		if word := strings.TrimSpace(l); len([]rune(strings.TrimRight(l, "\n"))) > lineWidth && strings.Contains(word, " ") && !strings.HasPrefix(word, "$") {
			t.Errorf("longer than %d columns: %s", lineWidth, l)
		}
	}
	var r doctorsReport
	if err := json.Unmarshal(line.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, d := range r.Findings {
		if d.State != healthy && d.State != limited && d.State != missing || d.Found == "" || seen[d.Area+d.Name] {
			t.Errorf("finding %+v: want a state, what was found, and each thing once", d)
		}
		if d.State == missing && d.Means == "" {
			t.Errorf("%s is missing, and the report does not say what that means", d.Name)
		}
		seen[d.Area+d.Name] = true
		if !strings.Contains(text.String(), d.Name) {
			t.Errorf("the text does not mention %s", d.Name)
		}
	}
}
