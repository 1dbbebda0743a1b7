package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"floodproof/bench/node"
	"floodproof/reports/verdict"
)

// The exit statuses.
const (
	ExitPass = 0
	ExitFail = 1
	// ExitUsage: wrong usage or configuration; nothing was run.
	ExitUsage = 2
	// ExitUnknown: nothing was shown, neither good nor bad.
	ExitUnknown = 3
	// ExitInterrupted: the user stopped the run; its report was written.
	ExitInterrupted = 130
)

// Program is one invocation of floodproof.
type Program struct {
	// Args are the arguments without the program's name; Arg0 is how it was called, to call itself again.
	Args           []string
	Arg0           string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Version and Commit are of this build; empty where nobody stamped them.
	Version, Commit string

	// parts are replaced by the tests that break the pipeline on purpose.
	parts node.Parts
}

// verb is one subcommand.
type verb struct {
	name, synopsis, doc string
	run                 func(ctx context.Context, p *Program, args []string) (int, error)
	hidden              bool
}

func verbs() []verb {
	return []verb{
		{name: "run", synopsis: "run [flags] [SCENARIO...]", doc: "play scenarios against a pipeline and judge them", run: runVerb},
		{name: "list", synopsis: "list [scenarios|providers|backends|faults|invariants]", doc: "show what there is", run: listVerb},
		{name: "judge", synopsis: "judge [--json] LEDGER", doc: "judge a recorded run again", run: judgeVerb},
		{name: "report", synopsis: "report [--format F] RUN", doc: "print or write a run's report", run: reportVerb},
		{name: "record", synopsis: "record --to URL --out FILE [flags]", doc: "keep a tape of real traffic in front of an endpoint, scrubbed", run: recordVerb},
		{name: "replay", synopsis: "replay FILE --to URL [flags]", doc: "play a tape back, signed anew", run: replayVerb},
		{name: "crosscheck", synopsis: "crosscheck URL --rate N [flags]", doc: "measure an endpoint beside vegeta, and say where the two differ", run: crosscheckVerb},
		{name: "serve", synopsis: serveSynopsis, doc: "run the reference pipeline for real: receiver, workers, dashboard, metrics", run: serveVerb},
		{name: "compare", synopsis: "compare [flags] [SCENARIO]", doc: "play one scenario on every backend that is here, and put them beside each other", run: compareVerb},
		{name: "capacity", synopsis: "capacity [flags]", doc: "find the highest rate that a backend holds", run: capacityVerb},
		{name: "diff", synopsis: "diff [flags] OLD NEW", doc: "say what changed between two runs, or two series of them", run: diffVerb},
		{name: "dlq", synopsis: dlqSynopsis, doc: "look at the dead letters of serve, give them back, drop them", run: dlqVerb},
		{name: "replay-events", synopsis: "replay-events --since T [flags]", doc: "work on events of serve again, from what was received", run: replayEventsVerb},
		{name: "doctor", synopsis: doctorSynopsis, doc: "say what this machine can run, and how to get the rest", run: doctorVerb},
		{name: "version", synopsis: "version", doc: "print the version", run: versionVerb},
		{name: "node", synopsis: "node ROLE [flags]", doc: "one process of the pipeline", run: nodeVerb, hidden: true},
	}
}

// usageError is the user's mistake: status 2, and never a stack trace.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usage error with a hint.
func usagef(hint, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), hint: hint}
}

// Main runs the verb that Args name and returns the exit status. It reports errors itself.
func (p *Program) Main(ctx context.Context) int {
	if len(p.Args) == 0 || slices.Contains([]string{"help", "-h", "-help", "--help"}, p.Args[0]) {
		p.usage(p.Stdout)
		if len(p.Args) == 0 {
			return ExitUsage
		}
		return ExitPass
	}
	for _, v := range verbs() {
		if v.name == p.Args[0] {
			status, err := v.run(ctx, p, p.Args[1:])
			return p.finish(status, err)
		}
	}
	return p.finish(ExitUsage, usagef("floodproof help lists the verbs", "unknown verb %q", p.Args[0]))
}

// finish prints an error and turns it into a status.
func (p *Program) finish(status int, err error) int {
	if err == nil {
		return status
	}
	if errors.Is(err, flag.ErrHelp) {
		return ExitPass
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintf(p.Stderr, "floodproof: error: %s\n", line)
	}
	var u *usageError
	if errors.As(err, &u) {
		if u.hint != "" {
			_, _ = fmt.Fprintf(p.Stderr, "floodproof: hint: %s\n", u.hint)
		}
		return ExitUsage
	}
	if status == ExitPass {
		return ExitUsage
	}
	return status
}

func (p *Program) usage(w io.Writer) {
	_, _ = fmt.Fprint(w, wrap("floodproof plays webhook providers, breaks the pipeline meanwhile, and accounts for every event.", 0, helpWidth))
	_, _ = fmt.Fprintf(w, "\nusage: floodproof VERB [flags] [argument...]; floodproof VERB -h says more\n\n")
	for _, v := range verbs() {
		if !v.hidden {
			_, _ = fmt.Fprintf(w, "  %-*s%s", verbIndent-2, v.name, wrap(v.doc, verbIndent, helpWidth))
		}
	}
	_, _ = fmt.Fprintf(w, `
exit status:
  0 pass   1 fail   2 usage or configuration   3 unknown   130 interrupted

start with:  floodproof run smoke
`)
}

// flags makes the flag set of a verb; its help goes to standard output and its errors come back as usage errors.
func (p *Program) flags(name, synopsis string) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	p.help(fs, synopsis)
	return fs
}

// parse reads flags that may stand before, between and behind the other arguments, and returns those.
func parse(fs *flag.FlagSet, args []string) ([]string, error) {
	var rest []string
	for {
		if err := fs.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usagef(fmt.Sprintf("floodproof %s -h lists its flags", fs.Name()), "%s: %w", fs.Name(), err)
		}
		if fs.NArg() == 0 {
			return rest, nil
		}
		rest = append(rest, fs.Arg(0))
		args = fs.Args()[1:]
	}
}

// self makes commands that run this very program again, and for the processes of the pipeline the small program beside it, if that is of the same build.
func (p *Program) self(ctx context.Context) (func(args ...string) *exec.Cmd, error) {
	path, err := exec.LookPath(p.Arg0)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		if path, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("find this program's own file: %w", err)
		}
	}
	small := node.Beside(ctx, path, node.Stamp(p.Version, p.Commit))
	return func(args ...string) *exec.Cmd {
		program := path
		if small != "" && len(args) > 1 && args[0] == "node" && slices.Contains(node.Roles(), args[1]) {
			program, args = small, args[1:]
		}
		return exec.Command(program, args...) //nolint:noctx // the fleet ends its children, in order and with a grace; the end of a context would just kill them
	}, nil
}

// statusOf is the exit status of an outcome.
func statusOf(o verdict.Outcome) int {
	switch o {
	case verdict.Pass:
		return ExitPass
	case verdict.Fail:
		return ExitFail
	case verdict.Unknown:
		return ExitUnknown
	default:
		return ExitUnknown
	}
}

func versionVerb(_ context.Context, p *Program, args []string) (int, error) {
	rest, err := parse(p.flags("version", "version"), args)
	if err != nil {
		return ExitUsage, err
	}
	if len(rest) > 0 {
		return ExitUsage, usagef("usage: floodproof version", "version: unexpected arguments %q", rest)
	}
	_, err = fmt.Fprintln(p.Stdout, strings.TrimSpace("floodproof "+p.version()+" "+p.Commit))
	return ExitPass, err
}

func (p *Program) version() string {
	if p.Version == "" {
		return "(unversioned build)"
	}
	return p.Version
}
