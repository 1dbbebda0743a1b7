package bench

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"floodproof/loadgen/tape"
)

const replaySynopsis = "replay FILE --to URL [--scale N | --rate N/s] [--secret PROVIDER=env:NAME|file:PATH] [--new-ids]"

// replayDoc is printed above the flags of `floodproof replay`.
const replayDoc = `
Plays a recording of floodproof record back: in its order, with its gaps, signed anew by each provider's
own rule. It never waits for an answer before it sends the next request; at most 256 are under way, what
is due then waits, is counted as blocked, and is measured from its due time all the same.

exit status:
  0    everything was answered with what its provider takes for success
  1    something was not, or was not sent
  2    usage
  130  interrupted

`

// replayFlags are the flags of `floodproof replay`.
type replayFlags struct {
	to, rate string
	scale    float64
	secrets  map[string][]string
	seed     int64
	newIDs   bool
	duration time.Duration
	json     bool
}

func (f *replayFlags) register(fs *flag.FlagSet) {
	f.secrets = map[string][]string{}
	fs.StringVar(&f.to, "to", "", "the target, such as http://127.0.0.1:8080; a path in it is put before the recorded one")
	fs.Float64Var(&f.scale, "scale", 1, "divide the gaps: 20 plays an hour in three minutes")
	fs.StringVar(&f.rate, "rate", "", "send at equal gaps, so many a second (100/s), instead of with the recorded gaps")
	fs.Func("secret", "`PROVIDER=env:NAME|file:PATH`: where a provider's signing secret is; again for another provider, or for one that is being rolled", f.secret)
	fs.Int64Var(&f.seed, "seed", -1, "seed of --new-ids, below 2^53: the same seed makes the same ids (default: random)")
	fs.BoolVar(&f.newIDs, "new-ids", false, "give the events new ids, so that a target that remembers the recorded ones takes them as new")
	fs.DurationVar(&f.duration, "for", 0, "end after this time (default: play everything)")
	fs.BoolVar(&f.json, "json", false, "print the summary as one line of JSON")
}

// secret reads PROVIDER=env:NAME or PROVIDER=file:PATH. A secret itself never stands on a command line, where every user of the machine can read it.
func (f *replayFlags) secret(arg string) error {
	name, from, ok := strings.Cut(arg, "=")
	kind, where, okKind := strings.Cut(from, ":")
	if !ok || !okKind || name == "" {
		return errors.New("write PROVIDER=env:NAME or PROVIDER=file:PATH")
	}
	value := ""
	switch kind {
	case "env":
		value = os.Getenv(where)
	case "file":
		text, err := os.ReadFile(where)
		if err != nil {
			return err
		}
		value = strings.TrimRight(string(text), "\r\n")
	default:
		return errors.New("write PROVIDER=env:NAME or PROVIDER=file:PATH")
	}
	if value == "" {
		return fmt.Errorf("%s is empty", from)
	}
	f.secrets[name] = append(f.secrets[name], value)
	return nil
}

// player checks the flags that say when to send.
func (f *replayFlags) player(fs *flag.FlagSet) (*tape.Player, error) {
	p := &tape.Player{Scale: f.scale, For: f.duration}
	scaled := false
	fs.Visit(func(g *flag.Flag) { scaled = scaled || g.Name == "scale" })
	switch {
	case scaled && f.rate != "":
		return nil, errors.New("--scale and --rate exclude each other")
	case f.rate != "":
		rate, err := strconv.ParseFloat(strings.TrimSuffix(f.rate, "/s"), 64)
		if err != nil || !(rate >= 1e-3 && rate <= 1e6) {
			return nil, fmt.Errorf("--rate %q; write a number of requests a second, such as 100/s", f.rate)
		}
		p.Rate = rate
	case !(f.scale >= 1e-3 && f.scale <= 1e6):
		return nil, fmt.Errorf("--scale %v; it is from 0.001 to 1000000", f.scale)
	}
	if f.duration < 0 {
		return nil, fmt.Errorf("--for %v is negative", f.duration)
	}
	return p, nil
}

// renewal is what gives new ids, nil if nobody asked for them.
func (f *replayFlags) renewal() (*tape.Renewal, error) {
	if f.seed >= 1<<53 || f.seed < -1 {
		return nil, errors.New("--seed is from 0 to 2^53-1")
	}
	if !f.newIDs {
		return nil, nil
	}
	if f.seed < 0 {
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails: crypto/rand crashes the program instead
		f.seed = int64(binary.LittleEndian.Uint64(raw[:]) >> 11)
	}
	return tape.NewRenewal(uint64(f.seed)), nil
}

// replayVerb plays a recording back.
func replayVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f replayFlags
	fs := p.flags("replay", replaySynopsis+"\n"+strings.TrimRight(replayDoc, "\n"))
	f.register(fs)
	files, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	hint := "usage: floodproof " + replaySynopsis
	if len(files) != 1 || f.to == "" {
		return ExitUsage, usagef(hint, "replay: one recording and --to are needed")
	}
	player, err := f.player(fs)
	if err != nil {
		return ExitUsage, usagef(hint, "replay: %w", err)
	}
	renewal, err := f.renewal()
	if err != nil {
		return ExitUsage, usagef(hint, "replay: %w", err)
	}
	to, err := url.Parse(f.to)
	if err != nil {
		return ExitUsage, usagef(hint, "replay: --to %s: %w", f.to, err)
	}
	sender, err := tape.NewSender(tape.SenderConfig{To: to, Secrets: f.secrets, Renewal: renewal})
	if err != nil {
		return ExitUsage, usagef(hint, "replay: %w", err)
	}
	defer sender.Close()
	unsigned := map[string]int{}
	recording, err := tape.Open(files[0], f.check(renewal, unsigned))
	if err != nil {
		return ExitUsage, fmt.Errorf("replay: %w", err)
	}
	defer func() { _ = recording.Close() }() // it was only read
	p.warnUnsigned(unsigned)
	return p.replay(ctx, f, player, recording, sender)
}

// check looks at every request before the first is sent: whether it can get new ids, and whether there is a secret for it.
func (f *replayFlags) check(renewal *tape.Renewal, unsigned map[string]int) func(tape.Request) error {
	return func(r tape.Request) error {
		if r.Body.LeftOut {
			return nil
		}
		if len(f.secrets[r.Provider]) == 0 {
			unsigned[r.Provider]++
		}
		if renewal == nil {
			return nil
		}
		return renewal.Apply(&r)
	}
}

// warnUnsigned says what will be sent without a signature.
func (p *Program) warnUnsigned(unsigned map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(unsigned)) {
		switch {
		case tape.Known(name):
			_, _ = fmt.Fprintf(p.Stderr, "floodproof: warning: %d requests of %s are sent without a signature; --secret %s=env:NAME gives one\n", unsigned[name], name, name)
		case name != "":
			_, _ = fmt.Fprintf(p.Stderr, "floodproof: warning: %d requests of %s are sent without a signature, as it is not known how %s signs\n", unsigned[name], name, name)
		default:
			_, _ = fmt.Fprintf(p.Stderr, "floodproof: warning: %d requests are sent without a signature, as nobody knows whose they are\n", unsigned[name])
		}
	}
}

// replay plays and prints the summary.
func (p *Program) replay(ctx context.Context, f replayFlags, player *tape.Player, recording *tape.Recording, sender *tape.Sender) (int, error) {
	if recording.Len() == 0 {
		return ExitFail, errors.New("replay: the recording has no requests")
	}
	var line atomic.Pointer[string]
	player.Progress = func(s tape.Summary) {
		text := fmt.Sprintf("sent %d of %d, %d answered with success, %d unanswered, %d blocked", s.Sent, s.Requests, s.OK, s.Unanswered, s.Blocked)
		line.Store(&text)
	}
	stop := statusLine(ctx, p.Stderr, func() string {
		if text := line.Load(); text != nil {
			return *text
		}
		return ""
	})
	sum, err := player.Run(ctx, recording, sender)
	stop()
	if sum == nil {
		return ExitUsage, usagef("", "%w", err)
	}
	show := printReplay
	if f.json {
		show = func(w io.Writer, _ replayFlags, s *tape.Summary) error { return json.NewEncoder(w).Encode(s) }
	}
	if printed := show(p.Stdout, f, sum); printed != nil {
		return ExitFail, printed
	}
	switch {
	case ctx.Err() != nil:
		return ExitInterrupted, nil
	case err != nil:
		return ExitFail, err
	case !sum.Passed():
		return ExitFail, nil
	}
	return ExitPass, nil
}

// printReplay prints a summary for people.
func printReplay(w io.Writer, f replayFlags, s *tape.Summary) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %d of %d requests were sent in %.1f s, %d were answered with success\n",
		map[bool]string{true: "PASS", false: "FAIL"}[s.Passed()], s.Sent, s.Requests, s.Elapsed.Seconds(), s.OK)
	for _, status := range slices.Sorted(maps.Keys(s.Refused)) {
		fmt.Fprintf(&b, "  refused with %-8d %d\n", status, s.Refused[status])
	}
	for _, n := range []struct {
		count      int
		name, note string
	}{
		{s.Unanswered, "unanswered", ""}, {s.Unsigned, "unsigned", ""}, {s.Skipped, "skipped", "the recording does not have their bodies"},
		{s.LeftOut, "left out", "due after --for"}, {s.NotSent, "not sent", "interrupted"}, {s.Blocked, "blocked", "they waited for one of 256 slots: the target was slow"},
		{s.Late, "late", "sent over 10 ms after due though a slot was free: this machine was slow"},
	} {
		if n.count > 0 {
			fmt.Fprintf(&b, "  %-21s %d%s\n", n.name, n.count, note(n.note))
		}
	}
	if s.FirstError != nil {
		fmt.Fprintf(&b, "  first without answer  %v\n", s.FirstError)
	}
	if f.newIDs {
		fmt.Fprintf(&b, "  new ids               --seed %d\n", f.seed)
	}
	fmt.Fprintf(&b, "\n  ms from due       p50      p90      p99    p99.9      max  samples\n")
	for _, l := range []struct {
		name string
		p    tape.Percentiles
	}{{"answer", s.Latency()}, {"begin of sending", s.Lag()}} {
		fmt.Fprintf(&b, "  %-16s", l.name)
		for _, v := range []*float64{l.p.P50, l.p.P90, l.p.P99, l.p.P999, l.p.Max} {
			if v == nil {
				b.WriteString("        -")
				continue
			}
			fmt.Fprintf(&b, "%9.2f", *v)
		}
		fmt.Fprintf(&b, "%9d\n", l.p.Count)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// note is a remark in brackets, or nothing.
func note(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
