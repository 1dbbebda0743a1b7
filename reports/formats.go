package reports

import (
	"encoding/json"
	"fmt"
	"io"
)

// Format writes a report. It reads the report only, so that several may run at once on the same.
type Format func(io.Writer, *Report) error

// Formats are the formats by the names that `floodproof report RUN --format` takes.
func Formats() map[string]Format {
	return map[string]Format{
		"text": Text, "markdown": Markdown, "html": HTML, "junit": JUnit, "hgrm": Hgrm, "json": JSON, "jsonl": JSONL,
		"vegeta-gob": VegetaGob, "vegeta-json": VegetaJSON,
	}
}

// JSON writes the verdict, as verdict.json has it.
func JSON(w io.Writer, r *Report) error {
	b, err := json.MarshalIndent(r.Verdict, "", "  ")
	if err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write verdict: %w", err)
	}
	return nil
}
