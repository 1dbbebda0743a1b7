package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"floodproof/reports"
	"floodproof/reports/verdict"
)

const judgeSynopsis = "judge [--json] LEDGER"

// judgeVerb judges a ledger again, from its bytes alone. A run's directory stands for the ledger in it.
func judgeVerb(_ context.Context, p *Program, args []string) (int, error) {
	fs := p.flags("judge", judgeSynopsis)
	asJSON := fs.Bool("json", false, "print the verdict as one line of JSON")
	paths, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(paths) != 1 {
		return ExitUsage, usagef("usage: floodproof "+judgeSynopsis, "judge: one ledger at a time")
	}
	path := paths[0]
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, reports.LedgerFile)
	}
	v, err := verdict.JudgeFile(path)
	if err != nil {
		return ExitUsage, fmt.Errorf("%s: %w", path, err)
	}
	if *asJSON {
		err = json.NewEncoder(p.Stdout).Encode(v)
	} else {
		err = p.text(&reports.Report{Path: path, Verdict: v})
	}
	return statusOf(v.Outcome), err
}
