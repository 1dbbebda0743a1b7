package matrix_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/matrix"
	"floodproof/reports/verdict"
)

var (
	anybody = matrix.Family{Name: "network", Scenario: "network", Why: "Does it survive a network?", Survives: []string{}}
	power   = matrix.Family{Name: "power", Scenario: "power", Why: "Is it there after a cut?", Survives: []string{"power-loss", "failover"}}
)

// run is the verdict of a run in which all went well, with two faults.
func run(backend, durability string) *verdict.Verdict {
	return &verdict.Verdict{
		Scenario: "power", Backend: backend, Durability: durability, Outcome: verdict.Pass, DurationS: 40,
		Counts: verdict.Counts{Events: 910, Acked: 900, Applied: 900},
		Faults: []verdict.Fault{{Fault: "disk.power-cut", Status: "done"}, {Fault: "downstream.outage", Status: "done"}},
		Findings: []verdict.Finding{
			{Invariant: "no-loss", Outcome: verdict.Pass}, {Invariant: "no-double-effect", Outcome: verdict.Pass}, {Invariant: "drained", Outcome: verdict.Pass},
			{Invariant: "faults-exercised", Outcome: verdict.Pass}, {Invariant: "delivered", Outcome: verdict.Pass},
			{Invariant: "dead-letters-accounted", Outcome: verdict.Pass},
		},
	}
}

// finds sets the outcome of an invariant.
func finds(v *verdict.Verdict, invariant string, o verdict.Outcome) {
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Invariant == invariant {
			f.Outcome, f.Observed = o, "as seen"
		}
	}
}

func loses(n int64) func(*verdict.Verdict) {
	return func(v *verdict.Verdict) {
		v.Counts.Lost, v.Counts.Applied, v.Outcome = n, 900-n, verdict.Fail
		finds(v, "no-loss", verdict.Fail)
	}
}

func TestNewCell(t *testing.T) {
	tests := []struct {
		name       string
		family     matrix.Family
		durability string
		require    bool
		change     func(*verdict.Verdict)
		words      string
		outcome    verdict.Outcome
		why        string
	}{
		{"all went well", power, "power-loss", true, nil, "nothing lost", verdict.Pass, ""},
		{"more than is claimed", power, "process", false, nil, "nothing lost", verdict.Pass, ""},
		{"a loss that the claim excludes", power, "power-loss", false, loses(12), "lost 12 of 900", verdict.Fail, ""},
		{"a loss that it does not", power, "process", false, loses(12), "lost 12 of 900 (not claimed)", verdict.Pass, ""},
		{"a loss that it does not, with dead letters that are empty", power, "process", false, func(v *verdict.Verdict) {
			loses(12)(v)
			finds(v, "dead-letters-accounted", verdict.Fail)
		}, "lost 12 of 900 (not claimed)", verdict.Pass, ""},
		{"dead letters without a loss", power, "process", false, func(v *verdict.Verdict) { finds(v, "dead-letters-accounted", verdict.Fail) },
			"nothing lost", verdict.Fail, "failed besides: dead-letters-accounted"},
		{"a loss of one that claims nothing, of what everybody must survive", anybody, "none", false, loses(12), "lost 12 of 900", verdict.Fail, ""},
		{"twice", power, "power-loss", false, func(v *verdict.Verdict) {
			v.Counts.Doubled, v.Counts.DoubledUnacked = 1, 2
			finds(v, "no-double-effect", verdict.Fail)
		}, "doubled 3", verdict.Fail, ""},
		{"twice is no question of durability", power, "none", false, func(v *verdict.Verdict) {
			loses(12)(v)
			v.Counts.Doubled = 1
		}, "lost 12 of 900, doubled 1 (not claimed)", verdict.Fail, ""},
		{"stuck", power, "power-loss", false, func(v *verdict.Verdict) {
			v.Counts.Pending = 7
			finds(v, "drained", verdict.Unknown)
			finds(v, "no-loss", verdict.Unknown)
		}, "stuck", verdict.Unknown, "as seen"},
		{"stuck where nothing is claimed", power, "none", false, func(v *verdict.Verdict) {
			v.Counts.Pending = 7
			finds(v, "drained", verdict.Unknown)
			v.Faults[0].Status = "failed"
		}, "stuck (not claimed)", verdict.Pass, "as seen; disk.power-cut failed"},
		{"not drained, whatever is pending", power, "power-loss", false, func(v *verdict.Verdict) { finds(v, "drained", verdict.Fail) }, "stuck", verdict.Unknown, "as seen"},
		{"a fault that cannot be had", power, "power-loss", false, func(v *verdict.Verdict) { v.Faults[0].Status = "not-applicable" }, "not exercised", verdict.Pass, "disk.power-cut not-applicable"},
		{"a fault that cannot be had and is required", power, "power-loss", true, func(v *verdict.Verdict) { v.Faults[0].Status = "not-applicable" }, "not exercised", verdict.Unknown, "disk.power-cut not-applicable"},
		{"a fault that met nobody", power, "power-loss", false, func(v *verdict.Verdict) { v.Faults[1].Status = "vacuous" }, "not exercised", verdict.Pass, "downstream.outage vacuous"},
		{"a fault that met nobody does not excuse a loss", power, "power-loss", false, func(v *verdict.Verdict) {
			loses(3)(v)
			v.Faults[1].Status = "vacuous"
		}, "lost 3 of 900", verdict.Fail, "downstream.outage vacuous"},
		{"no faults at all", power, "power-loss", false, func(v *verdict.Verdict) { v.Faults = nil }, "not exercised", verdict.Pass, "the scenario has no faults"},
		{"not judged", power, "power-loss", false, func(v *verdict.Verdict) { v.Findings = v.Findings[1:] }, "not exercised", verdict.Pass, "no-loss: not judged; no-double-effect: "},
		{"something else failed", power, "power-loss", false, func(v *verdict.Verdict) { finds(v, "delivered", verdict.Fail) }, "nothing lost", verdict.Fail, "failed besides: delivered"},
		{"interrupted", power, "power-loss", false, func(v *verdict.Verdict) { v.Interrupted = true }, "not exercised", verdict.Unknown, "the run was interrupted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := run("sqlite", tt.durability)
			if tt.change != nil {
				tt.change(v)
			}
			c := matrix.NewCell(tt.family, v, tt.require)
			if c.Words() != tt.words || c.Outcome != tt.outcome || c.Why != tt.why {
				t.Errorf("got %q, %v, because %q; want %q, %v, because %q", c.Words(), c.Outcome, c.Why, tt.words, tt.outcome, tt.why)
			}
		})
	}
}

func TestGaveUp(t *testing.T) {
	for durability, want := range map[string]verdict.Outcome{"power-loss": verdict.Unknown, "none": verdict.Pass} {
		v := run("sqlite", durability)
		v.Interrupted, v.Counts.Pending = true, 5
		c := matrix.GaveUp(matrix.NewCell(power, v, false), 4*time.Minute)
		if c.State != matrix.Stuck || c.Outcome != want || c.Why != "given up after 4m0s with 5 acknowledged events pending" {
			t.Errorf("with the claim %s: got %q, %v, because %q; want stuck, %v", durability, c.State, c.Outcome, c.Why, want)
		}
	}
}

func TestOutcomeOfTheWhole(t *testing.T) {
	cells := map[string]matrix.Cell{
		"kept":   matrix.NewCell(power, run("a", "power-loss"), false),
		"broken": matrix.Broken(power, "a", errors.New("no disk")),
	}
	lost := run("a", "power-loss")
	loses(1)(lost)
	cells["lost"] = matrix.NewCell(power, lost, false)
	weak := run("a", "none")
	loses(1)(weak)
	cells["weak"] = matrix.NewCell(power, weak, false)
	tests := []struct {
		add  []string
		want verdict.Outcome
	}{
		{nil, verdict.Unknown},
		{[]string{"kept"}, verdict.Unknown}, // a cell is missing
		{[]string{"kept", "kept"}, verdict.Pass},
		{[]string{"kept", "weak"}, verdict.Pass},
		{[]string{"kept", "broken"}, verdict.Unknown},
		{[]string{"lost"}, verdict.Fail},
		{[]string{"broken", "lost"}, verdict.Fail},
	}
	for _, tt := range tests {
		m := matrix.New([]matrix.Family{power}, []matrix.Backend{{Name: "a"}, {Name: "b"}})
		for _, name := range tt.add {
			m.Add(cells[name])
		}
		if m.Outcome != tt.want {
			t.Errorf("%q: got %v, want %v", tt.add, m.Outcome, tt.want)
		}
	}
}

// hostile is what a name or an error could try on a terminal and in a page.
const hostile = "<script>alert(1)</script>\x1b[2J\n"

// sample is a matrix with all that there can be, as wide as the real one.
func sample() *matrix.Matrix {
	var families []matrix.Family
	for _, name := range []string{"processes", "broker", "network", "disk", "power", "downstream"} {
		families = append(families, matrix.Family{Name: name, Scenario: "chaos-" + name, Why: "Does it survive " + name + "?", Survives: power.Survives})
	}
	backends := []matrix.Backend{{Name: "sqlite", Doc: "embedded"}, {Name: "redis-streams@everysec", Doc: hostile}, {Name: "postgres@async-commit"}}
	m := matrix.New(families, backends)
	m.StartedAt, m.Version = "2026-11-30T23:00:00Z", hostile
	m.Missing = []matrix.Missing{{Name: "rabbitmq", Why: "apt-get install rabbitmq-server brings it"}}
	for i, b := range backends {
		for k, f := range families {
			v := run(b.Name, []string{"power-loss", "none", "process"}[i])
			switch {
			case i == 0 && k == 1:
				v.Faults[0].Status = "not-applicable"
			case i == 0 && k == 3:
				loses(1)(v)
			case i == 1 && k > 2 && k < 5:
				loses(int64(120 + k))(v)
			case i == 2 && k == 4:
				v.Counts.Pending = 5
				finds(v, "drained", verdict.Unknown)
			case i == 2 && k == 5:
				m.Add(matrix.Broken(f, b.Name, errors.New(hostile)))
				continue
			}
			c := matrix.NewCell(f, v, false)
			c.Report = "20261130T230000.000Z-" + f.Scenario + "-" + b.Name + "/report.html"
			m.Add(c)
		}
	}
	return m
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := matrix.Text(&b, sample()); err != nil {
		t.Fatal(err)
	}
	got := b.String()
	for line := range strings.Lines(got) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.ContainsRune(got, '\x1b') {
		t.Errorf("a foreign text moves the cursor:\n%q", got)
	}
	for _, want := range []string{
		"FAIL  what survives what: 3 backends, 6 families of faults\n",
		"  sqlite                 kept      –      kept    LOST 1   kept     kept\n",
		"  redis-streams@everysec kept      kept   kept    lost 123 lost 124 kept\n",
		"  postgres@async-commit  kept      kept   kept    kept     stuck    –\n",
		"  sqlite, disk: lost 1 of 900\n",
		"  redis-streams@everysec, disk: lost 123 of 900 (not claimed)\n",
		"  postgres@async-commit, power: stuck (not claimed) (as seen)\n",
		"  sqlite, broker: not exercised (disk.power-cut not-applicable)\n",
		"  rabbitmq is not here: apt-get install rabbitmq-server brings it\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + got)
	}
	var coloured bytes.Buffer
	if err := matrix.ColorText(&coloured, sample()); err != nil {
		t.Fatal(err)
	}
	if plain := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured.String(), ""); plain != got || !strings.Contains(coloured.String(), "\x1b[1;31mLOST 1\x1b[0m") {
		t.Errorf("with its colours taken away it differs, or what failed is not red:\n%s", cmp.Diff(got, plain))
	}
}

func TestNarrow(t *testing.T) {
	m := sample()
	for i := range m.Cells {
		if c := &m.Cells[i]; c.Backend == "redis-streams@everysec" {
			c.State, c.Lost = matrix.Lost, 123456
		}
	}
	var b bytes.Buffer
	if err := matrix.Text(&b, m); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if want := "-123456"; !strings.Contains(b.String(), want) {
		t.Errorf("lacks %s:\n%s", want, b.String())
	}
}

func TestPage(t *testing.T) {
	var b bytes.Buffer
	if err := matrix.HTML(&b, sample()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	names, links := map[string]int{}, 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		e, ok := tok.(xml.StartElement)
		if !ok {
			continue
		}
		names[e.Name.Local]++
		for _, a := range e.Attr {
			if a.Name.Local == "href" {
				links++
				if !strings.HasSuffix(a.Value, "/report.html") || strings.Contains(a.Value, ":") || strings.HasPrefix(a.Value, "/") {
					t.Errorf("a link to %q, want a report beside the page", a.Value)
				}
			}
			if a.Name.Local == "src" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("attribute %s = %q", a.Name.Local, a.Value)
			}
		}
	}
	if names["script"]+names["link"]+names["img"]+names["iframe"] > 0 {
		t.Errorf("the page needs something else: %v", names)
	}
	if links != 17 || names["td"] != 18 {
		t.Errorf("got %d cells with %d links, want 18 with 17: one run came to nothing", names["td"], links)
	}
	for _, want := range []string{
		`content="default-src 'none'; style-src 'unsafe-inline'"`, "Some backend does not keep what it claims", `<td class="failed"`, "<b>lost 1 of 900</b>",
		`<td class="weak"`, "not claimed · 2/2 faults", "<small>none</small>", "Does it survive power?",
		"floodproof run --all-faults --backend sqlite,redis-streams@everysec,postgres@async-commit processes broker network disk power downstream",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestWriteAll(t *testing.T) {
	dir, m := t.TempDir(), sample()
	for range 2 { // it is written anew after each cell
		if err := matrix.WriteAll(dir, m); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("got %v, error %v; want the two files and nothing else", entries, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, matrix.JSONFile))
	if err != nil {
		t.Fatal(err)
	}
	var again matrix.Matrix
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, &again); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", matrix.JSONFile, diff)
	}
	if err := matrix.WriteAll(filepath.Join(dir, "missing"), m); err == nil {
		t.Error("a folder that is not there was written")
	}
}
