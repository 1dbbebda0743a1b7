package matrix

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// JSON writes matrix.json, schema 1: indented, with a newline at the end.
func JSON(w io.Writer, m *Matrix) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return fmt.Errorf("write the matrix: %w", err)
	}
	return nil
}

// WriteAll writes the files of a matrix into its folder: matrix.json and matrix.html. Each appears only when it is whole, so that it may be called after every cell.
func WriteAll(dir string, m *Matrix) error {
	return errors.Join(writeFile(filepath.Join(dir, JSONFile), m, JSON), writeFile(filepath.Join(dir, HTMLFile), m, HTML))
}

func writeFile(name string, m *Matrix, format func(io.Writer, *Matrix) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", name, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	b := bufio.NewWriter(f)
	if err := errors.Join(format(b, m), b.Flush(), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
