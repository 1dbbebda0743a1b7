package reports

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

func TestWriteAll(t *testing.T) {
	for _, name := range []string{"fail", "empty", "hostile"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := WriteAll(dir, runs()[name].run(t)); err != nil {
				t.Fatal(err)
			}
			want := []string{"junit.xml", "latency.hgrm", "latency.png", "latency.svg", "report.html", "report.md", "timeline.png", "timeline.svg"}
			var got []string
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				got = append(got, f.Name())
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("files %v, want %v", got, want)
			}
			for _, p := range []string{"latency", "timeline"} {
				picturesAreSound(t, filepath.Join(dir, p))
			}
		})
	}
}

func picturesAreSound(t *testing.T, base string) {
	t.Helper()
	b, err := os.ReadFile(base + ".png")
	if err != nil {
		t.Fatal(err)
	}
	im, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if w := im.Bounds().Dx(); w < 1900 {
		t.Errorf("%s.png is %d pixels wide, want about 2000", base, w)
	}
	if b, err = os.ReadFile(base + ".svg"); err != nil {
		t.Fatal(err)
	}
	if notANumber.Match(b) {
		t.Errorf("%s.svg has something that is no number", base)
	}
	if !bytes.Contains(b, []byte("sans-serif")) {
		t.Errorf("%s.svg names no generic font", base)
	}
	d := xml.NewDecoder(bytes.NewReader(b))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s.svg: %v", base, err)
		}
	}
}

func TestWriteAllReportsEveryError(t *testing.T) {
	err := WriteAll(filepath.Join(t.TempDir(), "missing"), written(verdict.Pass))
	if err == nil || !strings.Contains(err.Error(), "report.html") || !strings.Contains(err.Error(), "timeline.png") {
		t.Errorf("WriteAll = %v, want an error for each file", err)
	}
}

func TestNoHalfFileStays(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	err := writeFile(filepath.Join(dir, "report.html"), nil, func(w io.Writer, _ *Report) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("writeFile = %v, want %v", err, broken)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// row is one line of an hgrm file.
type row struct {
	value, percentile float64
	count             int64
}

func rows(t *testing.T, text string) []row {
	t.Helper()
	lines := strings.Split(text, "\n")
	if !strings.Contains(lines[0], "Value") || !strings.Contains(lines[0], "1/(1-Percentile)") || lines[1] != "" {
		t.Errorf("head %q, %q is not that of the format", lines[0], lines[1])
	}
	var out []row
	for _, l := range lines[2:] {
		if strings.HasPrefix(l, "#") || l == "" {
			continue
		}
		var r row
		var inverse string
		if _, err := fmt.Sscan(l, &r.value, &r.percentile, &r.count, &inverse); err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		out = append(out, r)
	}
	return out
}

func TestHgrm(t *testing.T) {
	r := runs()["pass"].run(t)
	got := rows(t, write(t, Hgrm, r))
	if len(got) < 20 {
		t.Fatalf("%d lines for %d samples", len(got), r.Ack.TotalCount())
	}
	for i := 1; i < len(got); i++ {
		a, b := got[i-1], got[i]
		if b.value < a.value || b.percentile < a.percentile || b.count < a.count {
			t.Errorf("line %d goes back: %+v after %+v", i, b, a)
		}
	}
	last := got[len(got)-1]
	if last.percentile != 1 || last.count != r.Ack.TotalCount() {
		t.Errorf("last line %+v, want percentile 1 of %d", last, r.Ack.TotalCount())
	}
	if p := *r.Verdict.LatencyMS.Ack.Max; last.value < p*.999 || last.value > p*1.001 {
		t.Errorf("highest value %v ms, the verdict says %v", last.value, p)
	}
	if got := rows(t, write(t, Hgrm, runs()["empty"].run(t))); len(got) != 0 {
		t.Errorf("%d lines without samples", len(got))
	}
}

func TestJSONL(t *testing.T) {
	r := runs()["fail"].run(t)
	counts := map[string]int64{}
	for _, l := range strings.Split(strings.TrimSpace(write(t, JSONL, r)), "\n") {
		var line struct{ Kind string }
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		counts[line.Kind]++
	}
	c := r.Verdict.Counts
	for kind, want := range map[string]int64{"header": 1, "event": c.Events, "delivery": c.Deliveries, "attempt": c.Attempts, "fault": 8, "segment": 8, "note": 1, "end": 1} {
		if counts[kind] != want {
			t.Errorf("%d lines of kind %s, want %d", counts[kind], kind, want)
		}
	}
	if counts["call"] < c.Effects {
		t.Errorf("%d calls for %d effects", counts["call"], c.Effects)
	}
}

func TestJSONIsTheVerdict(t *testing.T) {
	r := written(verdict.Fail)
	var got verdict.Verdict
	if err := json.Unmarshal([]byte(write(t, JSON, r)), &got); err != nil {
		t.Fatal(err)
	}
	if got.Outcome != verdict.Fail || got.Counts != r.Verdict.Counts {
		t.Errorf("JSON = %+v", got)
	}
}

func TestLoad(t *testing.T) {
	b := (&day{seed: 3, events: 500}).write(t)
	folder := func(t *testing.T, files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	t.Run("without a verdict, judged again", func(t *testing.T) {
		r, err := Load(folder(t, map[string]string{LedgerFile: string(b)}))
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Counts.Events != 500 {
			t.Errorf("%d events, want 500", r.Verdict.Counts.Events)
		}
	})
	t.Run("the stored verdict", func(t *testing.T) {
		r, err := Load(folder(t, map[string]string{LedgerFile: string(b), VerdictFile: `{"run_id": "r-7f3a", "scenario": "stored"}`}))
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict.Scenario != "stored" {
			t.Errorf("scenario %q, want that of the stored verdict", r.Verdict.Scenario)
		}
	})
	t.Run("a link to the folder", func(t *testing.T) {
		dir := folder(t, map[string]string{LedgerFile: string(b)})
		link := filepath.Join(t.TempDir(), "latest")
		if err := os.Symlink(dir, link); err != nil {
			t.Skipf("this system makes no symbolic links: %v", err)
		}
		if _, err := Load(link); err != nil {
			t.Error(err)
		}
	})
	t.Run("the ledger itself, judged again", func(t *testing.T) {
		dir := folder(t, map[string]string{LedgerFile: string(b), VerdictFile: "rubbish"})
		if r, err := Load(filepath.Join(dir, LedgerFile)); err != nil || r.Verdict.Counts.Events != 500 {
			t.Errorf("Load = %v, %v", r, err)
		}
	})
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"no ledger", map[string]string{}, LedgerFile},
		{"no ledger inside", map[string]string{LedgerFile: "rubbish"}, "not a ledger"},
		{"rubbish for a verdict", map[string]string{LedgerFile: string(b), VerdictFile: "rubbish"}, "judged again"},
		{"another run's verdict", map[string]string{LedgerFile: string(b), VerdictFile: `{"run_id": "other"}`}, `"other"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if r, err := Load(folder(t, tt.files)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Load = %v, %v, want an error with %q", r, err, tt.want)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load = %v, want not exist", err)
	}
}

func TestDamagedLedgerIsShownAsFarAsItGoes(t *testing.T) {
	b := (&day{seed: 5, events: 8000}).write(t)
	b[len(b)/2] ^= 0xff
	r := load(t, b)
	if r.Damage == nil || errors.Is(r.Damage, ledger.ErrNoEnd) || r.Series.Len() == 0 {
		t.Fatalf("damage %v, %d points, want a damaged report with a part of the run", r.Damage, r.Series.Len())
	}
	if r.Verdict.Outcome == verdict.Pass {
		t.Error("a damaged ledger passes")
	}
	if got := write(t, Text, r); !strings.Contains(got, "only in part") {
		t.Errorf("the text does not say that the ledger is damaged:\n%s", got)
	}
	if err := JSONL(io.Discard, r); err == nil {
		t.Error("the dump of a damaged ledger is silent about it")
	}
}
