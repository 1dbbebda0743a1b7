package bench

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"floodproof/reports/versus"
)

const diffSynopsis = "diff [--limit PERCENT] [--backend NAME] [--force] [--json] OLD NEW"

// diffVerb says what changed between two runs, or two series of them. It needs nothing but their files, on any platform.
func diffVerb(_ context.Context, p *Program, args []string) (int, error) {
	fs := p.flags("diff", diffSynopsis)
	limit := fs.Float64("limit", 100*versus.DefaultLimit, "by how many per cent a latency may grow, where that is proved")
	backend := fs.String("backend", "", "of directories with runs of several backends, as a comparison leaves them, look at this one")
	force := fs.Bool("force", false, "compare another scenario or seed, or a scenario that was changed, and judge latencies of different machines")
	asJSON := fs.Bool("json", false, "print the difference as one line of JSON")
	paths, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(paths) != 2 {
		return ExitUsage, usagef("usage: floodproof "+diffSynopsis, "diff: two runs are needed, the old one and the new one")
	}
	var sides [2][]versus.Answer
	for i, path := range paths {
		if sides[i], err = loadSide(path, *backend); err != nil {
			return ExitUsage, usagef("a run's directory, its verdict.json, or a directory of runs", "diff: %w", err)
		}
	}
	d, err := versus.Diff(sides[0], sides[1], versus.DiffOptions{Limit: *limit / 100, Force: *force})
	if errors.Is(err, versus.ErrNotComparable) {
		return ExitUsage, usagef("--backend picks one of several backends; --force compares all the same", "diff: %w", err)
	}
	if err != nil {
		return ExitUsage, usagef("", "diff: %w", err)
	}
	if *asJSON {
		err = json.NewEncoder(p.Stdout).Encode(d)
	} else {
		err = d.Text(p.Stdout)
	}
	return statusOf(d.Outcome), err
}

// loadSide reads one side, of one backend if it is named.
func loadSide(path, backend string) ([]versus.Answer, error) {
	runs, err := versus.Load(path)
	if err != nil || backend == "" {
		return runs, err
	}
	all := len(runs)
	runs = slices.DeleteFunc(runs, func(r versus.Answer) bool { return r.Backend != backend })
	if len(runs) == 0 {
		return nil, usagef("", "%s: none of its %d runs is on backend %q", path, all, backend)
	}
	return runs, nil
}
