package reports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteAll writes the files of a run that are made from its ledger and verdict: report.html, report.md, junit.xml, latency.hgrm and the plots. It goes on
// after an error and returns all of them.
func WriteAll(dir string, r *Report) error {
	var errs []error
	for _, f := range []struct {
		name   string
		format Format
	}{{"report.html", HTML}, {"report.md", Markdown}, {"junit.xml", JUnit}, {"latency.hgrm", Hgrm}} {
		errs = append(errs, writeFile(filepath.Join(dir, f.name), r, f.format))
	}
	return errors.Join(append(errs, WritePlots(dir, r))...)
}

// writeFile writes a format into a file of its own name, which appears only when it is whole: a reader never sees half a report.
func writeFile(name string, r *Report, format Format) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	if err := errors.Join(format(f, r), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
