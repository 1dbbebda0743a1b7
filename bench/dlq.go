package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"floodproof/bench/backends"
	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
	"floodproof/reports/wording"
)

const dlqSynopsis = "dlq list|show|redrive|drop [EVENT...] [flags]"

// dlqDoc is printed above the flags of `floodproof dlq`.
const dlqDoc = `
The dead letters of floodproof serve: events that were given up, with every
attempt's error and time and the raw payload. They are never trimmed. It works
beside a pipeline that runs, and finds its queue by the same --config, variables
or flags.

  list      those that the flags choose, oldest first
  show      one event: all attempts, all that was done with it by hand, and its
            payload
  redrive   make them due at once; attempts start at zero again, steps that are
            finished stay finished
  drop      take them off the list without work; each is written down first, as
            a line of JSON, to standard output or --out. The event stays known:
            a delivery of it is a duplicate, as before

An EVENT is an id, or provider/id where two providers have the same. redrive and
drop take EVENTs, flags that choose, or --all. Whatever comes from outside is
shown with its control characters spelled out.

exit status:
  0 done   1 not all of it could be done
  2 usage, or a queue that cannot be opened

`

// boardStore is a queue that can be looked after.
type boardStore interface {
	backends.Store
	dashboard.Queue
}

// dlqFlags are the flags of `floodproof dlq`.
type dlqFlags struct {
	store            storeFlags
	choice           letterFilter
	json, payload    bool
	all, yes, raw    bool
	out              string
	verb, synopsis   string
	stdout, progress io.Writer
}

// dlqVerb looks after the dead letters.
func dlqVerb(ctx context.Context, p *Program, args []string) (int, error) {
	f := dlqFlags{stdout: p.Stdout, progress: p.Stderr, synopsis: dlqSynopsis}
	fs := p.flags("dlq", dlqSynopsis)
	f.register(fs)
	p.help(fs, dlqSynopsis+"\n"+strings.TrimRight(dlqDoc, "\n"))
	rest, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	verbs := map[string]func(context.Context, boardStore) (int, error){"list": f.list, "show": f.show, "redrive": f.redrive, "drop": f.drop}
	if len(rest) == 0 || verbs[rest[0]] == nil {
		return ExitUsage, usagef("usage: floodproof "+dlqSynopsis, "dlq: say list, show, redrive or drop")
	}
	f.verb, f.choice.names = rest[0], rest[1:]
	if err := f.check(); err != nil {
		return ExitUsage, usagef("floodproof dlq -h says more", "dlq %s: %w", f.verb, err)
	}
	return withStore(ctx, &f.store, "dlq "+f.verb, verbs[f.verb])
}

// withStore opens the queue for a verb and closes it behind it.
func withStore(ctx context.Context, flags *storeFlags, name string, verb func(context.Context, boardStore) (int, error)) (status int, err error) {
	store, err := flags.open(ctx)
	if err != nil {
		return ExitUsage, fmt.Errorf("%s: %w", name, err)
	}
	defer func() {
		if failure := store.Close(context.WithoutCancel(ctx)); failure != nil {
			status, err = ExitFail, errors.Join(err, failure)
		}
	}()
	status, err = verb(ctx, store)
	if err != nil && status == ExitPass {
		status = ExitFail
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return status, err
}

func (f *dlqFlags) register(fs *flag.FlagSet) {
	f.store.register(fs)
	f.choice.register(fs)
	fs.BoolVar(&f.json, "json", false, "list and show: a line of JSON for each")
	fs.BoolVar(&f.payload, "payload", false, "list --json: with the payloads")
	fs.BoolVar(&f.raw, "raw", false, "show: the payload and nothing else, byte by byte as it was received; not for a terminal")
	fs.BoolVar(&f.all, "all", false, "redrive and drop: all of them")
	fs.BoolVar(&f.yes, "yes", false, "redrive of more than one, and drop: do it, and do not only say what would be done")
	fs.StringVar(&f.out, "out", "", "drop: the `file` for what is dropped, which must not be there yet")
}

// check finds flags that do not belong together.
func (f *dlqFlags) check() error {
	named := len(f.choice.names) > 0
	acts := f.verb == "redrive" || f.verb == "drop"
	switch {
	case f.verb == "list" && named:
		return fmt.Errorf("list takes no events, got %q", f.choice.names)
	case f.verb == "show" && len(f.choice.names) != 1:
		return errors.New("name one event")
	case !acts && (f.all || f.yes):
		return errors.New("--all and --yes are for redrive and drop")
	case f.out != "" && f.verb != "drop":
		return errors.New("--out is for drop")
	case acts && f.all && (named || f.choice.narrows()):
		return errors.New("--all is all of them: leave out what else chooses")
	case acts && !f.all && !named && !f.choice.narrows():
		return errors.New("say which: events, --all, or flags that choose")
	case slices.Contains(f.choice.names, ""):
		return errors.New("an event's id is not empty")
	}
	return f.choice.check()
}

func (f *dlqFlags) list(ctx context.Context, q boardStore) (int, error) {
	table, n := newLetterTable(f.stdout, terminalWidth(f.stdout)), 0
	err := f.choice.letters(ctx, q, func(l queue.DeadLetter) error {
		n++
		if !f.json {
			return table.add(&l)
		}
		j := newLetterJSON(&l)
		if f.payload {
			j.setPayload(l.Payload)
		}
		return j.line(f.stdout)
	})
	if err := errors.Join(err, table.out.Flush()); err != nil {
		return ExitFail, err
	}
	_, err = fmt.Fprintf(f.progress, "%s\n", wording.Plural(n, "dead letter"))
	return ExitPass, err
}
