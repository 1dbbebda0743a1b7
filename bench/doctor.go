package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/chaos/cutfs"
)

const doctorSynopsis = "doctor [--json] [--out DIR]"

// health is what a machine can do of one thing.
type health string

const (
	// healthy: all of it.
	healthy health = "ok"
	// limited: it works, but what a run says of it means less.
	limited health = "limited"
	// missing: it cannot be had as things are.
	missing health = "missing"
)

// diagnosis is one line of the doctor's report.
type diagnosis struct {
	Area  string `json:"area"`
	Name  string `json:"name"`
	State health `json:"state"`
	// Variants are the weaker forms of a backend, which share its server.
	Variants []string `json:"variants,omitempty"`
	// Found is what there is, Means what follows from that, Fix the one command that helps; the last two may be empty.
	Found string `json:"found"`
	Means string `json:"means,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// doctorsReport is what doctor --json prints, as one line.
type doctorsReport struct {
	// Backend is the default, which Runs says can run.
	Backend  string      `json:"default_backend"`
	Runs     bool        `json:"runs"`
	Findings []diagnosis `json:"findings"`
}

// The areas of a report, in their order.
const (
	backendArea = "backends"
	faultArea   = "faults"
	machineArea = "machine"
)

// doctorVerb says what this machine can run. Its status is 0 if the default backend can, however little else there is.
func doctorVerb(ctx context.Context, p *Program, args []string) (int, error) {
	fs := p.flags("doctor", doctorSynopsis)
	asJSON := fs.Bool("json", false, "print one line of JSON")
	out := fs.String("out", filepath.Join("reports", "runs"), "look at the disk under this directory")
	rest, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(rest) > 0 {
		return ExitUsage, usagef("usage: floodproof "+doctorSynopsis, "doctor: unexpected argument %q", rest[0])
	}
	dir, err := existing(*out)
	if err != nil {
		return ExitUsage, fmt.Errorf("look at %s: %w", *out, err)
	}
	report, err := p.examine(ctx, dir)
	if err != nil {
		return ExitUsage, err
	}
	if *asJSON {
		err = json.NewEncoder(p.Stdout).Encode(report)
	} else {
		err = report.print(p.Stdout)
	}
	if !report.Runs {
		return ExitFail, err
	}
	return ExitPass, err
}

// existing is the nearest directory above a path that is there: runs make the rest.
func existing(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(path)
		if err == nil && info.IsDir() || path == filepath.Dir(path) {
			return path, err
		}
		path = filepath.Dir(path)
	}
}

func (p *Program) examine(ctx context.Context, dir string) (*doctorsReport, error) {
	self, err := p.self(ctx)
	if err != nil {
		return nil, err
	}
	r := &doctorsReport{Backend: backends.Default}
	def := tryDefault(ctx, dir)
	r.Runs = def.State != missing
	r.Findings = append(r.Findings, examineServers(ctx, self, def)...)
	r.Findings = append(r.Findings, examineDocker(ctx, self))
	r.Findings = append(r.Findings, powerCut(), networkNamespaces())
	r.Findings = append(r.Findings, examineMachine(ctx, dir)...)
	return r, nil
}

// tryDefault opens the default backend for real.
func tryDefault(ctx context.Context, dir string) diagnosis {
	d := diagnosis{Area: backendArea, Name: backends.Default, State: healthy, Found: "embedded, the default"}
	err := harness.Supported()
	if err == nil {
		err = harness.CheckSharedPort(ctx)
	}
	if err == nil {
		err = harness.TryBackend(ctx, backends.Default, dir)
	}
	if err != nil {
		d.State, d.Found, d.Means = missing, err.Error(), "no scenario can be run here"
	}
	return d
}

// powerCut says whether the power of the queue's disk can be cut.
func powerCut() diagnosis {
	d := diagnosis{Area: faultArea, Name: "disk.*", State: healthy, Found: "a file system of floodproof's own can be mounted (FUSE)"}
	if err := cutfs.Available(); err != nil {
		reason := strings.TrimPrefix(err.Error(), cutfs.ErrUnavailable.Error()+": ")
		d.State, d.Found, d.Means = missing, reason, "faults of the disk are left out as not applicable; durability is claimed, not tried"
		switch {
		case runtime.GOOS != "linux": // nothing brings it
		case os.Geteuid() != 0:
			d.Fix = "sudo floodproof run power"
		default:
			d.Fix = "modprobe fuse"
		}
	}
	return d
}

const (
	lineWidth = 80
	nameWidth = 19
)

// print shows the report to a person, in 80 columns.
func (r *doctorsReport) print(w io.Writer) error {
	var b strings.Builder
	area := ""
	for _, d := range r.Findings {
		if d.Area != area {
			if area != "" {
				b.WriteByte('\n')
			}
			area = d.Area
			b.WriteString(strings.ToUpper(area) + "\n")
		}
		indent := 2 + 9 + nameWidth
		fmt.Fprintf(&b, "  %-8s %-*s", d.State, nameWidth, d.Name)
		b.WriteString(wrap(d.text(), indent, lineWidth))
		if d.Fix != "" {
			b.WriteString(strings.Repeat(" ", indent) + "$ " + d.Fix + "\n")
		}
	}
	if r.Runs {
		b.WriteString("\nThis machine can run floodproof. Start with: floodproof run smoke\n")
	} else {
		b.WriteString("\nThis machine cannot run floodproof.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d diagnosis) text() string {
	text := d.Found
	if d.Means != "" {
		text += ": " + d.Means
	}
	if len(d.Variants) > 0 {
		text += "; also " + strings.Join(d.Variants, ", ")
	}
	return text
}
