package versus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"floodproof/reports/verdict"
)

// verdictFile is the verdict in a run's directory.
const verdictFile = "verdict.json"

// maxVerdict bounds what is read as a verdict. A real one has about 10 kB.
const maxVerdict = 64 << 20

// Load reads one side of a difference: a verdict.json, a run's directory, or a directory with the directories of several runs, which may lie a folder deeper, as those of a
// comparison do. The runs come in the order of their starts; a run that is found twice, as by the link `latest`, counts once.
func Load(path string) ([]Answer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	if !info.IsDir() {
		r, err := loadFile(path)
		return []Answer{r}, err
	}
	r, err := loadFile(filepath.Join(path, verdictFile))
	if err == nil {
		return []Answer{r}, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return loadSeveral(path)
}

func loadSeveral(dir string) ([]Answer, error) {
	files, err := filepath.Glob(filepath.Join(globQuote(dir), "*", verdictFile))
	deeper, errDeeper := filepath.Glob(filepath.Join(globQuote(dir), "*", "*", verdictFile))
	if err = errors.Join(err, errDeeper); err != nil {
		return nil, fmt.Errorf("look for runs: %w", err)
	}
	var runs []Answer
	known := map[string]bool{}
	for _, f := range append(files, deeper...) {
		r, err := loadFile(f)
		if err != nil {
			return nil, err
		}
		if key := r.RunID + "|" + r.StartedAt + "|" + r.Backend; !known[key] {
			known[key] = true
			runs = append(runs, r)
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("%s: neither a run nor a directory of runs: there is no %s in it; floodproof judge makes one out of a ledger", dir, verdictFile)
	}
	slices.SortStableFunc(runs, func(a, b Answer) int { return started(a.Verdict).Compare(started(b.Verdict)) })
	return runs, nil
}

// started is when a run began; one that does not say so came first.
func started(v *verdict.Verdict) time.Time {
	t, err := time.Parse(time.RFC3339Nano, v.StartedAt)
	if err != nil {
		return time.Time{}
	}
	return t
}

// globQuote lets a directory's name stand for itself in a pattern.
func globQuote(dir string) string {
	if filepath.Separator == '\\' {
		return dir // there is no quoting on Windows, and names of runs have no such characters
	}
	var out []rune
	for _, r := range dir {
		if r == '*' || r == '?' || r == '[' || r == '\\' {
			out = append(out, '\\')
		}
		out = append(out, r)
	}
	return string(out)
}

func loadFile(path string) (Answer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Answer{}, fmt.Errorf("read verdict: %w", err)
	}
	if info.Size() > maxVerdict {
		return Answer{}, fmt.Errorf("read verdict: %s has %d bytes and is none", path, info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Answer{}, fmt.Errorf("read verdict: %w", err)
	}
	v, err := parse(path, text)
	if err != nil {
		return Answer{}, err
	}
	return Answer{v, scenarioText(path, v)}, nil
}

// parse reads a verdict.json.
func parse(path string, text []byte) (*verdict.Verdict, error) {
	v := &verdict.Verdict{}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("read verdict: %s is no verdict.json: %w", path, err)
	}
	if v.Schema != verdict.Schema || v.Scenario == "" {
		return nil, fmt.Errorf("read verdict: %s is no verdict.json of schema %d (schema %d, scenario %q)", path, verdict.Schema, v.Schema, v.Scenario)
	}
	return v, nil
}
