package reports

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"floodproof/reports/verdict"
)

// elements reads a page or a picture as XML and returns the names of its elements, and every attribute by name. The page is written so that it can be
// read this way, void elements apart.
func elements(t *testing.T, s string) (names map[string]int, attrs map[string][]string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	names, attrs = map[string]int{}, map[string][]string{}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names, attrs
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok {
			names[e.Name.Local]++
			for _, a := range e.Attr {
				attrs[a.Name.Local] = append(attrs[a.Name.Local], a.Value)
			}
		}
	}
}

func TestPageNeedsNothingElse(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		page := write(t, HTML, r)
		names, attrs := elements(t, page)
		for _, n := range []string{"script", "link", "img", "iframe", "object", "embed", "form", "base", "a"} {
			if names[n] > 0 {
				t.Errorf("the page has <%s>", n)
			}
		}
		for name, values := range attrs {
			if name == "src" || name == "href" || strings.HasPrefix(name, "on") {
				t.Errorf("attribute %s = %q", name, values)
			}
		}
		for _, u := range regexp.MustCompile(`url\([^)]*\)|@import`).FindAllString(page, -1) {
			if u != "url(#fp-hatch)" {
				t.Errorf("the page fetches %s", u)
			}
		}
		if !strings.Contains(page, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
			t.Error("no content security policy")
		}
		seen := map[string]bool{}
		for _, id := range attrs["id"] {
			if seen[id] {
				t.Errorf("two elements have the id %q", id)
			}
			seen[id] = true
		}
	})
}

var notANumber = regexp.MustCompile(`NaN|[^a-z]Inf\b|[+-]Inf|%!|ZgotmplZ|<no value>`)

func TestNoFormatShowsWhatIsNoNumber(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		formats := Formats()
		delete(formats, "jsonl")      // encoding/json refuses such a number
		delete(formats, "vegeta-gob") // binary, in which any bytes may stand beside each other
		for name, f := range formats {
			if got := notANumber.FindString(write(t, f, r)); got != "" {
				t.Errorf("%s shows %q", name, got)
			}
		}
	})
}

func TestMarkupInNamesStaysText(t *testing.T) {
	r := runs()["hostile"].run(t)
	page := write(t, HTML, r)
	if !strings.Contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;") {
		t.Error("the page does not show the hostile name at all")
	}
	if strings.Contains(page, "<script") || strings.Contains(page, `"'`+"`") {
		t.Error("a hostile name got into the page as it is")
	}
	text := write(t, Text, r) + write(t, ColorText, written(verdict.Pass))
	if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\u202e") || strings.Contains(text, "\x00") {
		t.Error("a hostile name reaches the terminal")
	}
	md := write(t, Markdown, r)
	prose, _, _ := strings.Cut(md, "Again:")
	// An escaped backtick begins no code.
	outside := regexp.MustCompile("`[^`]*`").ReplaceAllString(strings.ReplaceAll(prose, "\\`", ""), "")
	for _, bad := range []string{"<script", "](http://", " @x", "|@x ", "![a]", "\x1b"} {
		if strings.Contains(outside, bad) {
			t.Errorf("Markdown has %q outside of code", bad)
		}
	}
	for _, l := range strings.Split(md, "\n") {
		if n := strings.Count(strings.ReplaceAll(l, `\|`, ""), "|"); strings.HasPrefix(l, "| ❌") && n != 5 {
			t.Errorf("a hostile name makes a table row of %d cells: %s", n-1, l)
		}
	}
}

func TestXMLIsWellFormed(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		d := xml.NewDecoder(strings.NewReader(write(t, JUnit, r)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestShapesStayInside checks that nothing in a chart is drawn outside of it, and that no label covers another.
func TestShapesStayInside(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		for _, s := range []*scene{timeScene(r), curveScene(r)} {
			if s == nil {
				continue
			}
			for _, x := range s.Shapes {
				inside(t, s, x)
			}
			apart(t, s)
		}
	})
}

func inside(t *testing.T, s *scene, x shape) {
	t.Helper()
	corners := append([]point{{x.X, x.Y}, {x.X + x.W, x.Y + x.H}}, x.Points...)
	for _, c := range corners {
		if !(c.x >= -1e-6 && c.x <= s.W+1e-6 && c.y >= -1e-6 && c.y <= s.H+1e-6) {
			t.Fatalf("%s %q at %.1f, %.1f is outside of %.0f x %.0f", x.Kind, x.Class, c.x, c.y, s.W, s.H)
		}
	}
	if x.Kind == "text" && x.Anchor == "start" && x.X+textLength(x.Text) > s.W+charWidth {
		t.Errorf("text %q at %.0f runs out of the chart", x.Text, x.X)
	}
}

func apart(t *testing.T, s *scene) {
	t.Helper()
	var names []shape
	for _, x := range s.Shapes {
		if x.Class == "faultname" {
			names = append(names, x)
		}
	}
	for i, a := range names {
		for _, b := range names[:i] {
			if a.Y == b.Y && a.X < b.X+textLength(b.Text) && b.X < a.X+textLength(a.Text) {
				t.Errorf("%q covers %q", a.Text, b.Text)
			}
		}
	}
}

func TestManyFaultsKeepTheirLabelsApart(t *testing.T) {
	r := runs()["pass"].run(t)
	r.Verdict.Faults = nil
	for i := range 60 {
		r.Verdict.Faults = append(r.Verdict.Faults, verdict.Fault{Fault: "worker.kill", Target: strings.Repeat("w", i%30), AtS: float64(i) * 1.5, UntilS: float64(i)*1.5 + 1, Status: "done"})
	}
	r.Verdict.Faults = append(r.Verdict.Faults, verdict.Fault{Fault: "odd", AtS: math.NaN(), UntilS: math.Inf(1), Status: "done"}, verdict.Fault{Fault: "backward", AtS: 50, UntilS: 10, Status: "failed"})
	s := timeScene(r)
	apart(t, s)
	spans := 0
	for _, x := range s.Shapes {
		inside(t, s, x)
		if strings.HasPrefix(x.Class, "fault ") || x.Class == "fault" {
			spans++
		}
	}
	if spans != 61 {
		t.Errorf("%d faults drawn, want 61: all but the one without a time", spans)
	}
}

func TestAxes(t *testing.T) {
	tests := []struct {
		top       float64
		n         int
		end, step float64
	}{{0, 5, 1, 1}, {3, 5, 3, 1}, {180, 5, 200, 50}, {1234, 5, 1500, 500}, {10, 3, 10, 5}}
	for _, tt := range tests {
		if end, step := ceiling(tt.top, tt.n); end != tt.end || step != tt.step {
			t.Errorf("ceiling(%v, %d) = %v, %v, want %v, %v", tt.top, tt.n, end, step, tt.end, tt.step)
		}
	}
	for _, tt := range []struct{ v, below float64 }{{1, 1}, {0.3, 0.2}, {4.9, 2}, {5, 5}, {99, 50}} {
		if got := niceBelow(tt.v); math.Abs(got-tt.below) > 1e-9 {
			t.Errorf("niceBelow(%v) = %v, want %v", tt.v, got, tt.below)
		}
	}
	if got := nines(0.999); math.Abs(got-3) > 1e-9 {
		t.Errorf("nines(0.999) = %v, want 3", got)
	}
}
