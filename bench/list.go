package bench

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"floodproof/bench/backends"
	"floodproof/bench/harness"
	"floodproof/chaos"
	"floodproof/loadgen/provider"
	"floodproof/reports/verdict"
	"floodproof/scenarios"
)

const listSynopsis = "list [scenarios|providers|backends|faults|invariants]"

// lists are the things that can be listed, in the order in which all of them are shown.
func lists() []struct {
	name  string
	print func(io.Writer) error
} {
	return []struct {
		name  string
		print func(io.Writer) error
	}{
		{"scenarios", listScenarios},
		{"providers", listProviders},
		{"backends", listBackends},
		{"faults", listFaults},
		{"invariants", listInvariants},
	}
}

func listVerb(_ context.Context, p *Program, args []string) (int, error) {
	fs := p.flags("list", listSynopsis)
	names, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(names) > 1 {
		return ExitUsage, usagef("", "list: one kind at a time")
	}
	found := false
	for i, l := range lists() {
		if len(names) == 1 && names[0] != l.name {
			continue
		}
		found = true
		if len(names) == 0 {
			if i > 0 {
				_, _ = fmt.Fprintln(p.Stdout)
			}
			_, _ = fmt.Fprintf(p.Stdout, "%s\n", strings.ToUpper(l.name))
		}
		if err := l.print(p.Stdout); err != nil {
			return ExitUnknown, err
		}
	}
	if !found {
		return ExitUsage, usagef("usage: floodproof "+listSynopsis, "list: nothing is called %q", names[0])
	}
	return ExitPass, nil
}

// table prints rows of cells in columns.
func table(w io.Writer, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	return t.Flush()
}

func listScenarios(w io.Writer) error {
	var rows [][]string
	for _, name := range scenarios.Names() {
		s, err := loadScenario(name)
		if err != nil {
			return err
		}
		rows = append(rows, []string{name, fmt.Sprintf("%d events", s.Load.Events), harness.Planned(s).Round(time.Second).String(), s.Why})
	}
	return table(w, rows)
}

func listProviders(w io.Writer) error {
	rows := [][]string{{"NAME", "CANONICAL ID", "TIMEOUT", "RETRIES", "BATCH"}}
	for _, p := range provider.All() {
		rows = append(rows, []string{p.Name, p.CanonicalID, assumed(p.Timeout.String(), p.TimeoutAssumed), assumed(retries(p), p.DelaysAssumed), fmt.Sprint(p.MaxBatch)})
	}
	if err := table(w, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "* assumed: the provider does not publish it")
	return err
}

func assumed(s string, yes bool) string {
	if yes {
		return s + " *"
	}
	return s
}

func retries(p *provider.Provider) string {
	if p.OneShot() {
		return "none"
	}
	var total time.Duration
	for _, d := range p.Delays {
		total += d
	}
	return fmt.Sprintf("%d in %s", len(p.Delays), total.Round(time.Minute))
}

func listBackends(w io.Writer) error {
	var rows [][]string
	for _, b := range backends.All() {
		rows = append(rows, []string{b.Name, b.Doc})
	}
	return table(w, rows)
}

func listFaults(w io.Writer) error {
	for _, k := range chaos.Catalog() {
		if _, err := fmt.Fprintf(w, "%s\n    %s\n", k.Name, k.Doc); err != nil {
			return err
		}
		var rows [][]string
		for _, param := range k.Params {
			rows = append(rows, []string{"    " + param.Name, string(param.Kind), param.Default, param.Doc})
		}
		if err := table(w, rows); err != nil {
			return err
		}
	}
	return nil
}

func listInvariants(w io.Writer) error {
	var rows [][]string
	for _, d := range verdict.Invariants() {
		when := "if listed under expect"
		if d.Always {
			when = "always"
		}
		rows = append(rows, []string{d.Name, when, d.Doc})
	}
	return table(w, rows)
}
