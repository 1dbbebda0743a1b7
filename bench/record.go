package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"floodproof/loadgen/tape"
)

const recordSynopsis = "record --to URL --out FILE [--listen ADDR] [--scrub on|off] [--for D]"

// recordDoc is printed above the flags of `floodproof record`.
const recordDoc = `
A reverse proxy in front of a real endpoint. Requests and answers pass as they are, so that signatures
hold; each request is written to FILE (mode 0600, never overwritten), with personal data and
credentials replaced before it touches the disk. The address that it listens on is the one line on
standard output. floodproof replay FILE plays it back.

It ends at Ctrl-C or after --for: it takes no more, lets requests under way finish (ten seconds), and
closes the recording. If the disk fails, requests are forwarded all the same.

exit status:
  0    all that passed is recorded, also after Ctrl-C
  1    something that passed is not in the recording
  2    usage
  130  requests under way were cut off, or a second Ctrl-C ended it at once

`

// recordFlags are the flags of `floodproof record`.
type recordFlags struct {
	to, out, listen, scrub, host, provider string
	limit                                  int
	duration                               time.Duration
}

func (f *recordFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.to, "to", "", "the endpoint, such as http://127.0.0.1:8080; a path in it is put before that of every request")
	fs.StringVar(&f.out, "out", "", "file to record to")
	fs.StringVar(&f.listen, "listen", "127.0.0.1:8787", "address to listen on; port 0 takes a free one")
	fs.StringVar(&f.scrub, "scrub", "on", "on: replace personal data, leave out signatures and credentials; off: store everything as it came")
	fs.StringVar(&f.host, "host", "keep", "keep: send the Host that the provider sent, which some signatures cover; target: send the endpoint's own")
	fs.StringVar(&f.provider, "provider", "", "who sends everything (default: told from path and headers)")
	fs.IntVar(&f.limit, "limit", 1<<20, "largest body that is stored, in bytes; larger ones are forwarded and stored as length and SHA-256")
	fs.DurationVar(&f.duration, "for", 0, "end after this time (default: at Ctrl-C)")
}

// config checks the flags.
func (f *recordFlags) config() (tape.Config, error) {
	hint := "usage: floodproof " + recordSynopsis
	if f.to == "" || f.out == "" {
		return tape.Config{}, usagef(hint, "record: both --to and --out are needed")
	}
	to, err := url.Parse(f.to)
	if err == nil {
		err = tape.CheckEndpoint(to)
	}
	switch {
	case err != nil:
		return tape.Config{}, usagef(hint, "record: --to %s: %w", f.to, err)
	case f.scrub != "on" && f.scrub != "off":
		return tape.Config{}, usagef(hint, "record: --scrub %q; it is on or off", f.scrub)
	case f.host != "keep" && f.host != "target":
		return tape.Config{}, usagef(hint, "record: --host %q; it is keep or target", f.host)
	case f.limit < 1 || f.limit > tape.MaxBody:
		return tape.Config{}, usagef(hint, "record: --limit %d; it is from 1 to %d bytes", f.limit, tape.MaxBody)
	case f.duration < 0:
		return tape.Config{}, usagef(hint, "record: --for %v is negative", f.duration)
	}
	cfg := tape.Config{To: to, OwnHost: f.host == "target", Provider: f.provider, Limit: f.limit}
	if f.scrub == "on" {
		cfg.Scrubber = tape.NewScrubber()
	}
	return cfg, nil
}

// recordVerb records what passes on its way to an endpoint.
func recordVerb(ctx context.Context, p *Program, args []string) (int, error) {
	var f recordFlags
	fs := p.flags("record", recordSynopsis+"\n"+strings.TrimRight(recordDoc, "\n"))
	f.register(fs)
	rest, err := parse(fs, args)
	if err != nil {
		return ExitUsage, err
	}
	if len(rest) > 0 {
		return ExitUsage, usagef("usage: floodproof "+recordSynopsis, "record: unexpected arguments %q", rest)
	}
	cfg, err := f.config()
	if err != nil {
		return ExitUsage, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return ExitUsage, fmt.Errorf("record: listen: %w", err)
	}
	file, err := tape.Create(f.out, tape.Header{Scrubbed: cfg.Scrubber != nil, StartedAt: time.Now().UTC(), Version: p.Version})
	if err != nil {
		return ExitUsage, errors.Join(fmt.Errorf("record: %w", err), l.Close())
	}
	cfg.Warn = func(err error) { _, _ = fmt.Fprintf(p.Stderr, "\nfloodproof: error: %v\n", err) }
	recorder, err := tape.NewRecorder(cfg, file)
	if err != nil {
		return ExitUsage, errors.Join(fmt.Errorf("record: %w", err), l.Close(), file.Close())
	}
	return p.record(ctx, f, recorder, l)
}

// record serves until it is told to end, and says what it did.
func (p *Program) record(ctx context.Context, f recordFlags, r *tape.Recorder, l net.Listener) (int, error) {
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	_, _ = fmt.Fprintf(p.Stderr, "recording http://%s -> %s into %s; Ctrl-C ends it\n", l.Addr(), strings.TrimSuffix(f.to, "/"), f.out)
	if f.scrub == "off" {
		_, _ = fmt.Fprintf(p.Stderr, "floodproof: warning: --scrub off stores personal data, signatures and credentials as they come; keep %s to yourself\n", f.out)
	}
	_, _ = fmt.Fprintf(p.Stdout, "http://%s\n", l.Addr())
	start := time.Now()
	stop := statusLine(ctx, p.Stderr, func() string { return recordStatus(r.Stats(), time.Since(start)) })
	err := r.Serve(ctx, l)
	stop()
	p.recorded(f, r.Stats(), time.Since(start))
	switch {
	case err == nil:
		return ExitPass, nil
	case errors.Is(err, tape.ErrCutOff):
		return ExitInterrupted, fmt.Errorf("record: %w", err)
	default:
		return ExitFail, fmt.Errorf("record: %w", err)
	}
}

// recordStatus is a recording in one line.
func recordStatus(s tape.Stats, d time.Duration) string {
	line := fmt.Sprintf("%s  %d requests, %d recorded, %d bytes", d.Truncate(time.Second), s.Requests, s.Stored, s.Bytes)
	if s.Unreachable > 0 {
		line += fmt.Sprintf(", %d times the endpoint did not answer", s.Unreachable)
	}
	if s.Missed > 0 {
		line += fmt.Sprintf(", %d NOT RECORDED", s.Missed)
	}
	return line
}

// recorded says what a recording came to.
func (p *Program) recorded(f recordFlags, s tape.Stats, d time.Duration) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(p.Stderr, format+"\n", args...) }
	say("recorded %d of %d requests in %v into %s (%d bytes)", s.Stored, s.Requests, d.Truncate(time.Second), f.out, s.Bytes)
	for _, name := range slices.Sorted(maps.Keys(s.ByProvider)) {
		switch {
		case name == "":
			say("  %-20s %d; a replay sends them unsigned; --provider NAME says who they are", "(unknown)", s.ByProvider[name])
		case !tape.Known(name):
			say("  %-20s %d; a replay sends them unsigned, as it is not known how %s signs", name, s.ByProvider[name], name)
		default:
			say("  %-20s %d", name, s.ByProvider[name])
		}
	}
	for _, n := range []struct {
		count int
		text  string
	}{
		{s.Opaque, "bodies are neither JSON nor a form, so that they cannot be scrubbed: THEY ARE NOT IN THE RECORDING, only their length and SHA-256 are, and a replay skips them; --scrub off would keep them"},
		{s.Large, "bodies are larger than --limit: THEY ARE NOT IN THE RECORDING, only their length and SHA-256 are, and a replay skips them"},
		{s.Unreachable, "requests were answered 502 by the recorder, as the endpoint did not answer"},
		{s.Left, "requests had a sender who left before there was an answer"},
		{s.Broken, "requests did not arrive whole and were not recorded"},
	} {
		if n.count > 0 {
			say("floodproof: warning: %d %s", n.count, n.text)
		}
	}
}
