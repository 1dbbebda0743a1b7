package reports

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/HdrHistogram/hdrhistogram-go"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// written is a report made by hand, so that the golden files depend on this package alone.
func written(o verdict.Outcome) *Report {
	num := func(f float64) *float64 { return &f }
	v := &verdict.Verdict{
		Schema: 1, Version: "0.1.0", RunID: "r-7f3a", Scenario: "10k-day", Backend: "sqlite", Durability: "power-loss", Seed: 42, Outcome: o,
		StartedAt: "2026-11-30T09:00:00.5Z", DurationS: 92.4, Target: verdict.Target{Kind: "reference", Observer: "sink"},
		Counts: verdict.Counts{
			Events: 10_000, Acked: 9990, CutOff: 4, Undelivered: 6, Applied: 9979, DeadLettered: 11, Absent: 8, Recovered: 2, Attempts: 10_400, Effects: 9981,
		},
		ByProvider: map[string]verdict.Provider{
			"stripe": {Events: 6000, Acked: 5995, Applied: 5990, AckP99MS: num(34.14)}, "shopify": {Events: 4000, Acked: 3995, Applied: 3989},
		},
		LatencyMS: verdict.Latencies{
			Ack:    verdict.Latency{Count: 4635, P50: num(2.481), P90: num(6.68), P99: num(34.14), P999: num(120.4), Max: num(2050.9), Excused: 365},
			AckAll: verdict.Latency{Count: 10_000, P50: num(2.5), P90: num(7.1), P99: num(108), P999: num(1853), Max: num(12_057)},
		},
		Faults: []verdict.Fault{
			{Fault: "worker.kill", Target: "worker-1", AtS: 41, UntilS: 45, Status: "done"}, {Fault: "worker.kill", Target: "worker-2", AtS: 61, UntilS: 65.5, Status: "done"},
			{Fault: "disk.full", AtS: 70, UntilS: 72, Status: "vacuous"}, {Fault: "net.cut", Status: "not-applicable"},
		},
		Findings: []verdict.Finding{
			{Invariant: "no-loss", Outcome: verdict.Pass, Observed: "0 lost of 9990 acked", Limit: "0", LimitValue: num(0)},
			{Invariant: "latency-ack-p99", Outcome: verdict.Pass, Observed: "p99 34.1ms of 4635 samples", Limit: "p99 <= 200ms", LimitValue: num(200)},
		},
		Harness: verdict.Harness{Late: 3, LateP99MS: num(0.2), Notes: []string{"worker-2 needed 1.2 s to come back"}},
	}
	switch o {
	case verdict.Fail:
		v.Counts.Applied, v.Counts.Lost, v.Counts.Doubled = 9974, 3, 2
		v.Findings[0] = verdict.Finding{Invariant: "no-loss", Outcome: verdict.Fail, Observed: "3 lost of 9990 acked", Limit: "0", LimitValue: num(0),
			Examples: []string{"evt_1", "evt_2", "evt_3", "evt_4"}, Hint: "follow one of the examples through the ledger: was it acked before the queue's write was durable?"}
	case verdict.Unknown:
		v.Interrupted, v.Counts.Applied, v.Counts.Pending = true, 9939, 40
		v.Findings[0] = verdict.Finding{Invariant: "no-loss", Outcome: verdict.Unknown, Observed: "40 of 9990 acked events are pending", Limit: "0", LimitValue: num(0), Hint: "calls could still have come"}
	case verdict.Pass:
	}
	return &Report{
		Verdict: v, Header: &ledger.Header{}, End: &ledger.End{}, Why: "A whole day of webhooks, with a tenfold morning burst.",
		Ack: hdrhistogram.New(1, 1e9, 3), Effect: hdrhistogram.New(1, 1e9, 3),
	}
}

func TestGolden(t *testing.T) {
	for _, o := range []verdict.Outcome{verdict.Pass, verdict.Fail, verdict.Unknown} {
		r := written(o)
		golden(t, "text-"+o.String(), write(t, Text, r))
		golden(t, "markdown-"+o.String(), write(t, Markdown, r))
		golden(t, "junit-"+o.String(), write(t, JUnit, r))
	}
}

func TestSumThatDoesNotBalanceIsShown(t *testing.T) {
	r := written(verdict.Pass)
	r.Verdict.Counts.Applied -= 7
	for _, f := range []Format{Text, Markdown, HTML} {
		if got := write(t, f, r); !strings.Contains(got, "does not balance: off by 7") {
			t.Errorf("a sum that is off by 7 goes unnoticed:\n%s", got)
		}
	}
}

func TestTextKeepsToEightyColumns(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		text, _, _ := strings.Cut(write(t, Text, r), "\n  again ")
		for _, l := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Errorf("%d columns: %q", n, l)
			}
			if wording.Clean(l) != l {
				t.Errorf("control characters: %q", l)
			}
			if strings.TrimRight(l, " ") != l && strings.TrimSpace(l) == "" {
				t.Errorf("blank line of blanks: %q", l)
			}
		}
		if strings.Contains(text, "\n\n\n") {
			t.Errorf("two blank lines:\n%s", text)
		}
	})
}

func TestColourChangesNoCharacter(t *testing.T) {
	r := written(verdict.Fail)
	got := write(t, ColorText, r)
	if !strings.Contains(got, "\x1b[1;31mFAIL") {
		t.Errorf("no red in a coloured failure: %q", got)
	}
	for _, code := range []string{"0", "32", "33", "1;31"} {
		got = strings.ReplaceAll(got, "\x1b["+code+"m", "")
	}
	if want := write(t, Text, r); got != want {
		t.Errorf("colour changed the text:\n%s\nwant:\n%s", got, want)
	}
}

func TestJUnitCounts(t *testing.T) {
	tests := []struct {
		name                    string
		outcome                 verdict.Outcome
		findings                []verdict.Outcome
		tests, failures, errors int
	}{
		{"pass", verdict.Pass, []verdict.Outcome{verdict.Pass, verdict.Pass}, 2, 0, 0},
		{"fail", verdict.Fail, []verdict.Outcome{verdict.Fail, verdict.Pass, verdict.Unknown}, 3, 1, 1},
		{"unknown", verdict.Unknown, []verdict.Outcome{verdict.Unknown}, 1, 0, 1},
		{"nothing judged is an error", verdict.Unknown, nil, 1, 0, 1},
		{"interrupted: worse than its findings", verdict.Unknown, []verdict.Outcome{verdict.Pass}, 2, 0, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := written(tt.outcome)
			r.Verdict.Findings = nil
			for i, o := range tt.findings {
				r.Verdict.Findings = append(r.Verdict.Findings, verdict.Finding{Invariant: fmt.Sprint("i", i), Outcome: o})
			}
			var doc junitSuites
			if err := xml.Unmarshal([]byte(write(t, JUnit, r)), &doc); err != nil {
				t.Fatal(err)
			}
			s := doc.Suites[0]
			if s.Tests != tt.tests || s.Failures != tt.failures || s.Errors != tt.errors {
				t.Errorf("tests, failures, errors = %d, %d, %d, want %d, %d, %d", s.Tests, s.Failures, s.Errors, tt.tests, tt.failures, tt.errors)
			}
			failures, errs := 0, 0
			for _, c := range s.Cases {
				if c.Failure != nil {
					failures++
				}
				if c.Error != nil {
					errs++
				}
			}
			if len(s.Cases) != tt.tests || failures != tt.failures || errs != tt.errors {
				t.Errorf("%d cases with %d failures and %d errors, want what the suite says", len(s.Cases), failures, errs)
			}
		})
	}
}

func TestShell(t *testing.T) {
	tests := []struct{ in, want string }{
		{"10k-day", "10k-day"},
		{"", "''"},
		{"a b", "'a b'"},
		{"it's", `'it'\''s'`},
		{"$(rm -rf /)", "'$(rm -rf /)'"},
		{"redis-streams@everysec", "redis-streams@everysec"},
	}
	for _, tt := range tests {
		if got := shell(tt.in); got != tt.want {
			t.Errorf("shell(%q) = %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	tests := []struct{ got, want string }{
		{wording.Group(0), "0"}, {wording.Group(999), "999"}, {wording.Group(1000), "1,000"}, {wording.Group(-1234567), "-1,234,567"},
		{wording.Figure(0), "0"}, {wording.Figure(0.0421), "0.042"}, {wording.Figure(1.234), "1.23"}, {wording.Figure(34.14), "34.1"}, {wording.Figure(312.4), "312"}, {wording.Figure(12_345), "12,345"},
		{optional(nil), none}, {withUnit(nil, "MB"), none}, {size(nil), none},
		{span(0.352), "0.35 s"}, {span(92.4), "92.4 s"}, {span(100.2), "1 min 40 s"}, {span(120), "2 min"}, {span(3720), "1 h 2 min"},
		{share(1, 1_000_000), "< 0.01 %"}, {share(999_999, 1_000_000), "> 99.99 %"}, {share(0, 5), "0 %"}, {share(5, 5), "100 %"}, {share(1, 0), none},
		{clock(59.6), "1:00"}, {clock(3601), "1:00:01"}, {percentile(99.9), "p99.9"}, {wording.Plural(1, "event"), "1 event"}, {wording.Plural(0, "event"), "0 events"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
