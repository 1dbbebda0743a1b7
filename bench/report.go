package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"floodproof/reports"
)

const reportSynopsis = "report [--format F] RUN"

// reportVerb prints a run in one of the formats.
func reportVerb(_ context.Context, p *Program, args []string) (int, error) {
	fs := p.flags("report", reportSynopsis)
	known := strings.Join(slices.Sorted(maps.Keys(reports.Formats())), ", ")
	format := fs.String("format", "text", known+"; jsonl is every record of the ledger, vegeta-* are its attempts for vegeta report and vegeta plot")
	runs, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(runs) != 1 {
		return ExitUsage, usagef("usage: floodproof "+reportSynopsis, "report: one run at a time")
	}
	write, ok := reports.Formats()[*format]
	if !ok {
		return ExitUsage, usagef("known formats: "+known, "report: unknown format %q", *format)
	}
	full, err := reports.Load(runs[0])
	if err != nil {
		return ExitUsage, fmt.Errorf("report: %w", err)
	}
	if *format == "text" {
		return ExitPass, p.text(full)
	}
	return ExitPass, write(p.Stdout, full)
}

// text prints the summary, in colour on a terminal.
func (p *Program) text(r *reports.Report) error {
	if f, ok := p.Stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "" {
		return reports.ColorText(f, r)
	}
	return reports.Text(p.Stdout, r)
}
