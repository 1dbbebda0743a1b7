package reports

import (
	"errors"
	"fmt"
	"io"
	"os"

	"floodproof/reports/vegeta"
)

// VegetaGob writes the run's attempts as `vegeta attack` would, for `vegeta report` and `vegeta plot`; see reports/vegeta.
func VegetaGob(w io.Writer, r *Report) error { return results(w, r, vegeta.Gob) }

// VegetaJSON is VegetaGob as one JSON object a line.
func VegetaJSON(w io.Writer, r *Report) error { return results(w, r, vegeta.JSON) }

// results writes the run's attempts for vegeta.
func results(w io.Writer, r *Report, encoding vegeta.Encoding) error {
	if r.Path == "" {
		return errors.New("write results for vegeta: this report was not read from a file")
	}
	f, err := os.Open(r.Path)
	if err != nil {
		return fmt.Errorf("write results for vegeta: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return vegeta.Write(w, f, r.Header, encoding)
}
