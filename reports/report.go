package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/HdrHistogram/hdrhistogram-go"
	"go.yaml.in/yaml/v3"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// Names of the files in a run's folder.
const (
	LedgerFile  = "ledger"
	VerdictFile = "verdict.json"
)

// Report is one run, ready to be shown. It is not changed after Load and may be read from several goroutines.
type Report struct {
	// Path is the ledger's file, for formats that need every record; empty when the report was not read from a file.
	Path    string
	Verdict *verdict.Verdict
	Header  *ledger.Header
	// End is nil when the ledger was cut: the runner was killed, or the run still goes on. Damage says why nothing can be read beyond some
	// point, nil if everything could; the report shows what stands before it.
	End    *ledger.End
	Damage error
	// Why is the question that the scenario asks, empty if its text cannot be read.
	Why string
	// Series is the run second by second.
	Series Series
	// Ack and Effect are distributions in microseconds, of the same samples as the verdict's. They may be empty, never nil.
	Ack, Effect *hdrhistogram.Histogram
}

// Load reads a run: a folder with a ledger (a link to one, like `latest`, is fine) or a ledger itself. The verdict is the
// folder's verdict.json; where that is missing, the ledger is judged again.
func Load(path string) (*Report, error) {
	file := path
	if st, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	} else if st.IsDir() {
		file = filepath.Join(path, LedgerFile)
	}
	r := &Report{Path: file}
	if err := r.readLedger(); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if err := r.readVerdict(path != file); err != nil {
		return nil, err
	}
	return r, nil
}

// readLedger takes what the charts need out of the ledger. It reads the file twice: whether a sample is excused depends on faults, and in which second it
// falls on the first due time, and both may stand behind it in the file.
func (r *Report) readLedger() error {
	f, err := os.Open(r.Path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	return r.collect(f)
}

// collect fills the header, the series and the distributions from a ledger.
func (r *Report) collect(in io.ReadSeeker) error {
	var s scan
	header, end, damage := ledger.Read(in, s.visitor())
	if header == nil {
		return damage
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return err
	}
	c := newCollector(header, &s)
	// The second reading ends where the first did.
	if again, _, err := ledger.Read(in, c.visitor()); again == nil {
		return err
	}
	c.finish()
	r.Header, r.End, r.Damage, r.Why = header, end, damage, why(header.ScenarioText)
	r.Series, r.Ack, r.Effect = c.series, c.ack, c.effect
	return nil
}

// readVerdict takes the stored verdict of a folder, or judges the ledger.
func (r *Report) readVerdict(stored bool) error {
	if stored {
		file := filepath.Join(filepath.Dir(r.Path), VerdictFile)
		b, err := os.ReadFile(file)
		switch {
		case err == nil:
			return r.takeVerdict(file, b)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("read verdict: %w", err)
		}
	}
	var err error
	r.Verdict, err = verdict.JudgeFile(r.Path)
	return err
}

func (r *Report) takeVerdict(file string, b []byte) error {
	v := &verdict.Verdict{}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("read %s: %w; remove it to have the ledger judged again", file, err)
	}
	if v.RunID != r.Header.RunID {
		return fmt.Errorf("read %s: it belongs to run %q, the ledger beside it to run %q; remove it to have the ledger judged again", file, v.RunID, r.Header.RunID)
	}
	r.Verdict = v
	return nil
}

// why takes the question out of a scenario's text. A text that is no YAML has none.
func why(text string) string {
	var s struct {
		Why string `yaml:"why"`
	}
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		return ""
	}
	return s.Why
}
