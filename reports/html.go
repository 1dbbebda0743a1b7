package reports

import (
	"bufio"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

//go:embed page.html.tmpl
var pageText string

//go:embed page.css
var pageStyle string

// HTML writes the report as one page that needs nothing else: no network, no scripts, no fonts of its own. It follows the
// reader's light or dark theme and prints.
func HTML(w io.Writer, r *Report) error {
	t, err := template.New("report").Parse(pageText)
	if err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	b := bufio.NewWriter(w)
	if err := t.ExecuteTemplate(b, "page", newPage(r)); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	return nil
}

// page is what the template shows: words and numbers, ready made.
type page struct {
	Style                          template.CSS
	V                              *verdict.Verdict
	Outcome, Title, Headline, Why  string
	Meta                           []pair
	Tiles                          []tile
	Bars                           []bar
	Findings                       []finding
	Latencies                      []latencyRow
	Excused                        string
	Curve, Time                    *scene
	Curves                         []legend
	Fast                           bool
	Providers                      []providerRow
	Faults                         []faultRow
	Health, Env, Settings, Storage []pair
	Remarks                        []string
	Reproduce, Version             string
}

type pair struct{ Name, Value string }

// tile is one of the numbers at the top. Tone is "good", "bad" or empty.
type tile struct{ Name, Value, Unit, Note, Tone string }

// bar is one sum as a stacked bar. Width is its length in per cent of the longest.
type bar struct {
	Name, Total, Off string
	Width            string
	Parts            []barPart
}

// barPart is one class. Grow is its share of the bar; Class its colour.
type barPart struct{ Name, N, Share, Class, Grow string }

type finding struct {
	verdict.Finding
	Mark string
}

type legend struct{ Class, Name string }

type providerRow struct {
	Name, Events, Acked, Applied, Lost, P99 string
	Bad                                     bool
}

type faultRow struct{ Name, Target, At, For, Status string }

func newPage(r *Report) *page {
	v := r.Verdict
	p := &page{
		Style: template.CSS(pageStyle), V: v, Outcome: v.Outcome.String(), Title: wording.Clean(subject(v)), Headline: headline(v), Why: wording.Clean(r.Why),
		Meta: meta(v), Tiles: tiles(v), Bars: bars(v.Counts), Latencies: latencies(v),
		Curve: curveScene(r), Time: timeScene(r), Remarks: remarks(r), Reproduce: reproduce(v), Version: wording.Clean(v.Version),
		Health: health(v), Env: environment(r.Header), Settings: settings(r.Header.Env.BackendSettings), Storage: storage(v),
	}
	for _, f := range ranked(v.Findings) {
		p.Findings = append(p.Findings, finding{f, strings.TrimSpace(mark(f.Outcome))})
	}
	if n := v.LatencyMS.Ack.Excused; n > 0 {
		p.Excused = wording.Plural(n, "ack sample") + " excused: due while a fault stood in the way in, or within five seconds after."
	}
	if r.Ack.TotalCount() > 0 {
		p.Curves = append(p.Curves, legend{"ack", "ack: due to answer"})
	}
	if r.Effect.TotalCount() > 0 {
		p.Curves = append(p.Curves, legend{"effect", "effect: due to effect"})
	}
	for _, s := range v.Segments {
		p.Fast = p.Fast || s.Scale > 1
	}
	p.Providers, p.Faults = providerRows(v), faultRows(v.Faults)
	return p
}

// parseTime reads an RFC 3339 time and returns it in UTC.
func parseTime(s string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err == nil && !t.IsZero()
}

func meta(v *verdict.Verdict) []pair {
	started := none
	if t, ok := parseTime(v.StartedAt); ok {
		started = t.Format("2 Jan 2006, 15:04:05 UTC")
	}
	out := []pair{
		{"seed", strconv.FormatUint(v.Seed, 10)}, {"acknowledgement survives", wording.Clean(v.Durability)}, {"started", started},
		{"took", span(v.DurationS)}, {"run", wording.Clean(v.RunID)}, {"effects seen by", wording.Clean(v.Target.Observer)},
	}
	return slices.DeleteFunc(out, func(p pair) bool { return p.Value == "" })
}

func tiles(v *verdict.Verdict) []tile {
	c := v.Counts
	zero := func(n int64) string {
		switch {
		case n > 0:
			return "bad"
		case v.Outcome == verdict.Unknown || c.Acked == 0:
			return ""
		default:
			return "good"
		}
	}
	doubled := c.Doubled + c.DoubledUnacked
	return []tile{
		{"lost", wording.Group(c.Lost), "", "of " + wording.Plural(c.Acked, "acked event"), zero(c.Lost)},
		{"done twice", wording.Group(doubled), "", wording.Plural(c.Effects, "effect") + " seen", zero(doubled)},
		{"ack p99", optional(v.LatencyMS.Ack.P99), unit(v.LatencyMS.Ack.P99, "ms"), wording.Plural(v.LatencyMS.Ack.Count, "sample"), ""},
		{"effect p99", optional(v.LatencyMS.Effect.P99), unit(v.LatencyMS.Effect.P99, "ms"), wording.Plural(v.LatencyMS.Effect.Count, "sample"), ""},
		{"peak offered", optional(v.Rates.PeakOfferedPerS), unit(v.Rates.PeakOfferedPerS, "/s"), "mean " + optional(v.Rates.OfferedPerS) + unit(v.Rates.OfferedPerS, "/s"), ""},
	}
}

func unit(f *float64, u string) string {
	if f == nil {
		return ""
	}
	return u
}

// bars draws the sums below each other on one scale: the second bar is the acked part of the first.
func bars(c verdict.Counts) []bar {
	var out []bar
	for _, s := range sums(c) {
		b := bar{Name: s.Name, Total: wording.Group(s.Total), Width: percent(s.Total, c.Events)}
		if off := s.off(); off != 0 {
			b.Off = wording.Group(off)
		}
		for _, p := range s.shown() {
			b.Parts = append(b.Parts, barPart{p.Name, wording.Group(p.N), share(p.N, s.Total), "c-" + strings.ReplaceAll(p.Name, " ", "-"), percent(p.N, s.Total)})
		}
		out = append(out, b)
	}
	return out
}

func percent(n, of int64) string {
	if of <= 0 || n <= 0 {
		return "0"
	}
	return strconv.FormatFloat(min(100*float64(n)/float64(of), 100), 'f', 3, 64)
}

func providerRows(v *verdict.Verdict) []providerRow {
	var out []providerRow
	for _, name := range providers(v) {
		p := v.ByProvider[name]
		out = append(out, providerRow{wording.Clean(name), wording.Group(p.Events), wording.Group(p.Acked), wording.Group(p.Applied), wording.Group(p.Lost), optional(p.AckP99MS), p.Lost > 0})
	}
	return out
}

func faultRows(faults []verdict.Fault) []faultRow {
	var out []faultRow
	for _, f := range faults {
		row := faultRow{wording.Clean(f.Fault), wording.Clean(f.Target), span(f.AtS), span(max(f.UntilS-f.AtS, 0)), wording.Clean(f.Status)}
		if f.Status == "not-applicable" {
			row.At, row.For = none, none
		}
		out = append(out, row)
	}
	return out
}

func health(v *verdict.Verdict) []pair {
	h := v.Harness
	return []pair{
		{"sent late (over 10 ms)", wording.Group(h.Late)}, {"lateness p99", withUnit(h.LateP99MS, "ms")}, {"waited for a slot", wording.Group(h.Blocked)},
		{"skipped", wording.Group(h.Skipped)}, {"clock jumps", wording.Group(h.ClockJumps)},
	}
}

func environment(h *ledger.Header) []pair {
	e := h.Env
	cpus := none
	if e.CPUs > 0 {
		cpus = strconv.Itoa(e.CPUs)
	}
	out := []pair{
		{"system", wording.Clean(e.OS)}, {"processors", cpus}, {"file system", wording.Clean(e.FS)}, {"fsync, median", withUnit(e.FsyncUsP50, "µs")},
		{"Go", wording.Clean(e.Go)}, {"commit", wording.Clean(wording.Cut(e.Commit, 12))}, {"backend version", wording.Clean(e.BackendVersion)},
	}
	return slices.DeleteFunc(out, func(p pair) bool { return p.Value == "" || p.Value == none })
}

func settings(m map[string]string) []pair {
	var out []pair
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, pair{wording.Clean(k), wording.Clean(m[k])})
	}
	return out
}

func storage(v *verdict.Verdict) []pair {
	r := v.Resources
	return []pair{
		{"receiver, resident", withUnit(r.ReceiverRSSMB, "MB")}, {"worker, resident", withUnit(r.WorkerRSSMB, "MB")},
		{"runner, resident", withUnit(r.RunnerRSSMB, "MB")}, {"queue and store on disk", size(r.DiskBytes)},
		{"ledger, per event", withUnit(r.LedgerBytesPerEvent, "bytes")},
	}
}
