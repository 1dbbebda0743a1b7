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
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"floodproof/loadgen/crosscheck"
	"floodproof/loadgen/provider"
)

const crosscheckSynopsis = "crosscheck URL --rate N [--for D] [--rounds N] [--provider NAME --secret NAME=env:VAR|file:PATH | --body BYTES]"

// crosscheckDoc is printed above the flags of `floodproof crosscheck`.
const crosscheckDoc = `
Measures one endpoint with two load generators in turn, vegeta and floodproof's own: the same requests at
the same constant rate with as many in flight at most. It prints what each reports, vegeta's latencies also
from the instants at which its requests were due, and says in words where they differ and why.

exit status:
  0    measured
  2    usage
  3    floodproof's own generator was late, or nobody answered: its latencies
       mean nothing
  130  interrupted

`

// crosscheckFlags are the flags of `floodproof crosscheck`.
type crosscheckFlags struct {
	config   crosscheck.Config
	provider string
	secrets  replayFlags
	seed     int64
	json     bool
	remote   bool
}

func (f *crosscheckFlags) register(fs *flag.FlagSet) {
	f.secrets.secrets = map[string][]string{}
	fs.IntVar(&f.config.Rate, "rate", 0, "requests a second")
	fs.DurationVar(&f.config.For, "for", 5*time.Second, "how long each round takes")
	fs.IntVar(&f.config.Rounds, "rounds", 3, "how many rounds each generator has, in turn")
	fs.IntVar(&f.config.Slots, "slots", crosscheck.DefaultSlots, "how many requests are in flight at most, of either generator")
	fs.IntVar(&f.config.Body, "body", 1500, "length of a plain JSON body in bytes")
	fs.StringVar(&f.provider, "provider", "", "send this provider's requests instead, signed")
	fs.Func("secret", "`PROVIDER=env:NAME|file:PATH`: where the provider's signing secret is", f.secrets.secret)
	fs.Int64Var(&f.seed, "seed", -1, "seed of what is sent, below 2^53 (default: random)")
	fs.BoolVar(&f.json, "json", false, "print the result as one line of JSON")
	fs.BoolVar(&f.remote, "yes-remote", false, "send to another machine: it is mine, or its owner has agreed to the load")
}

// prepare checks the flags and completes the configuration.
func (f *crosscheckFlags) prepare(fs *flag.FlagSet, target string) error {
	f.config.URL = target
	u, err := url.Parse(target)
	if err != nil {
		return err
	}
	if !f.remote && u.Host != "" && !isLoopback(u.Hostname()) {
		return fmt.Errorf("%s is not this machine: a cross-check is two load tests with nothing to account for what they set off, and against somebody who has not "+
			"agreed to it, it is an attack; a network in between would also be most of what it measures. Add --yes-remote if you may and want to", u.Hostname())
	}
	switch {
	case f.seed >= 1<<53 || f.seed < -1:
		return errors.New("--seed is from 0 to 2^53-1")
	case f.seed < 0:
		var raw [8]byte
		_, _ = rand.Read(raw[:]) // never fails: crypto/rand crashes the program instead
		f.seed = int64(binary.LittleEndian.Uint64(raw[:]) >> 11)
	}
	f.config.Seed = uint64(f.seed)
	return f.sender(fs)
}

// sender completes the configuration by who sends.
func (f *crosscheckFlags) sender(fs *flag.FlagSet) error {
	if f.provider == "" {
		if len(f.secrets.secrets) > 0 {
			return errors.New("--secret without --provider: a plain body is not signed")
		}
		return nil
	}
	plain := false
	fs.Visit(func(g *flag.Flag) { plain = plain || g.Name == "body" })
	p, known := provider.Find(f.provider)
	switch {
	case plain:
		return errors.New("--provider and --body exclude each other: a provider's body is as long as it is")
	case !known:
		return fmt.Errorf("unknown provider %q; floodproof list providers shows those there are", f.provider)
	case len(f.secrets.secrets[p.Name]) == 0:
		return fmt.Errorf("--provider %s needs its signing secret: --secret %s=env:NAME, or =file:PATH", p.Name, p.Name)
	case len(f.secrets.secrets) > 1:
		return fmt.Errorf("--secret for %s: only %s sends", strings.Join(slices.Sorted(maps.Keys(f.secrets.secrets)), ", "), p.Name)
	}
	f.config.Provider, f.config.Secrets = p, f.secrets.secrets[p.Name]
	return nil
}

// isLoopback reports whether a host is this machine by its very name. Other names are not looked up: what they mean can change.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}

// crosscheckVerb measures with both generators.
func crosscheckVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f crosscheckFlags
	fs := p.flags("crosscheck", crosscheckSynopsis+"\n"+strings.TrimRight(crosscheckDoc, "\n"))
	f.register(fs)
	targets, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	hint := "usage: floodproof " + crosscheckSynopsis
	if len(targets) != 1 {
		return ExitUsage, usagef(hint, "crosscheck: one URL is needed")
	}
	if err := f.prepare(fs, targets[0]); err != nil {
		return ExitUsage, usagef(hint, "crosscheck: %w", err)
	}
	f.config.Progress = func(over, of int, name string) {
		_, _ = fmt.Fprintf(p.Stderr, "round %d of %d: %s sends for %v\n", over+1, of, name, f.config.For)
	}
	result, err := crosscheck.Run(ctx, f.config)
	switch {
	case ctx.Err() != nil:
		return ExitInterrupted, nil
	case err != nil:
		return ExitUsage, usagef(hint, "crosscheck: %w", err)
	}
	show := printCrosscheck
	if f.json {
		show = func(w io.Writer, r *crosscheck.Result) error { return json.NewEncoder(w).Encode(r) }
	}
	if err := show(p.Stdout, result); err != nil {
		return ExitUnknown, err
	}
	if result.Meaningless() {
		return ExitUnknown, nil
	}
	return ExitPass, nil
}

// printCrosscheck prints both sides and what to make of them.
func printCrosscheck(w io.Writer, r *crosscheck.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %d/s for %v, %d rounds each in turn, at most %d in flight, seed %d\n\n", r.URL, r.Rate, r.For, r.Rounds, r.Slots, r.Seed)
	fmt.Fprintf(&b, "%-34s%10s%12s%10s\n", "", "sent", "achieved/s", "failed")
	for _, side := range []struct {
		name string
		*crosscheck.Side
	}{{"vegeta", &r.Vegeta}, {"floodproof", &r.Floodproof}} {
		fmt.Fprintf(&b, "%-34s%10d%12.1f%10d%s\n", side.name, side.Sent, side.PerSecond, side.Failed(), note(failures(side.Side)))
	}
	fmt.Fprintf(&b, "\n%-34s%10s%10s%10s%10s%10s\n", "latency in ms", "p50", "p90", "p99", "p99.9", "max")
	for _, row := range []struct {
		name string
		crosscheck.Latencies
	}{
		{"vegeta, as it reports", r.Vegeta.Own}, {"vegeta, from the due time", r.Vegeta.Due},
		{"floodproof, from the due time", r.Floodproof.Due}, {"floodproof, from the begin", r.Floodproof.Own},
		{"vegeta sent late by", r.Vegeta.Late}, {"floodproof sent late by", r.Floodproof.Late},
	} {
		fmt.Fprintf(&b, "%-34s", row.name)
		for _, p := range []float64{50, 90, 99, 99.9, 100} {
			if row.TotalCount() == 0 {
				fmt.Fprintf(&b, "%10s", "-")
				continue
			}
			fmt.Fprintf(&b, "%10.2f", float64(row.At(p))/float64(time.Millisecond))
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	for _, f := range r.Findings() {
		fmt.Fprintf(&b, "%s\n", f.Text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// failures are the failed requests by what came of them.
func failures(s *crosscheck.Side) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(s.Refused)) {
		parts = append(parts, fmt.Sprintf("%d answered with %d", s.Refused[status], status))
	}
	if s.Unanswered > 0 {
		parts = append(parts, fmt.Sprintf("%d unanswered", s.Unanswered))
	}
	if s.Unconnected > 0 {
		parts = append(parts, fmt.Sprintf("%d without a connection", s.Unconnected))
	}
	return strings.Join(parts, ", ")
}
