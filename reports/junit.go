package reports

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// The elements of the JUnit format as Jenkins publishes it, which GitLab, Azure and the common GitHub actions read too:
// https://github.com/jenkinsci/xunit-plugin/blob/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd/junit-10.xsd
// (read 2026-11-30).
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Time     string       `xml:"time,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		ClassName string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Error     *junitProblem `xml:"error"`
		Failure   *junitProblem `xml:"failure"`
		Out       string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes one test case for each finding: a failure for fail, an error for unknown. A verdict without findings, or one whose
// outcome is worse than that of its findings, gets a case of its own, so that no reader of the file sees a pass where there is none.
func JUnit(w io.Writer, r *Report) error {
	v := r.Verdict
	suite := junitSuite{
		Name: wording.Clean(v.Scenario + "/" + v.Backend), Time: seconds(v.DurationS), Timestamp: timestamp(v.StartedAt),
		Properties: []junitProperty{
			{"run_id", wording.Clean(v.RunID)}, {"seed", strconv.FormatUint(v.Seed, 10)}, {"durability", wording.Clean(v.Durability)},
			{"outcome", v.Outcome.String()}, {"reproduce", wording.Clean(reproduce(v))},
		},
	}
	merged := verdict.Pass
	if len(v.Findings) == 0 {
		merged = verdict.Unknown
	}
	for _, f := range v.Findings {
		suite.add(v, f)
		merged = verdict.Merge(merged, f.Outcome)
	}
	if merged != v.Outcome || len(v.Findings) == 0 {
		suite.add(v, verdict.Finding{Invariant: "verdict", Outcome: v.Outcome, Observed: headline(v), Limit: "pass"})
	}
	doc := junitSuites{
		Name: "floodproof", Time: suite.Time, Tests: suite.Tests, Failures: suite.Failures, Errors: suite.Errors,
		Suites: []junitSuite{suite},
	}
	b, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, b); err != nil {
		return fmt.Errorf("write JUnit report: %w", err)
	}
	return nil
}

func (s *junitSuite) add(v *verdict.Verdict, f verdict.Finding) {
	c := junitCase{Name: wording.Clean(f.Invariant), ClassName: wording.Clean("floodproof." + v.Scenario + "." + v.Backend), Time: "0"}
	said := wording.Clean(f.Observed)
	if f.Limit != "" {
		said += " (limit " + wording.Clean(f.Limit) + ")"
	}
	problem := &junitProblem{Message: said, Type: f.Outcome.String(), Text: details(f)}
	switch f.Outcome {
	case verdict.Pass:
		c.Out = said
	case verdict.Fail:
		c.Failure = problem
		s.Failures++
	case verdict.Unknown:
		c.Error = problem
		s.Errors++
	}
	s.Tests++
	s.Cases = append(s.Cases, c)
}

// details is the hint and the examples, a line each.
func details(f verdict.Finding) string {
	var lines []string
	if f.Hint != "" {
		lines = append(lines, wording.Clean(f.Hint))
	}
	for _, id := range f.Examples {
		lines = append(lines, wording.Clean(id))
	}
	return strings.Join(lines, "\n")
}

// seconds is a length of time as the schema wants it.
func seconds(f float64) string { return strconv.FormatFloat(max(f, 0), 'f', 3, 64) }

// timestamp is an RFC 3339 time as the schema wants it: ISO 8601 without zone, in UTC.
func timestamp(s string) string {
	t, ok := parseTime(s)
	if !ok {
		return ""
	}
	return t.Format("2006-01-02T15:04:05")
}
