package reports

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	lookAt = flag.String("look", "", "folder into which TestLook writes reports of made-up runs")
)

// runs are the made-up runs that every format must show.
func runs() map[string]*day {
	return map[string]*day{
		"pass":        {seed: 42, events: 4000, faults: usualFaults()},
		"fail":        {seed: 43, events: 4000, faults: usualFaults(), lost: 3, doubled: 12},
		"interrupted": {seed: 44, events: 1000, undrained: true, lost: 40},
		"cut":         {seed: 45, events: 1000, cut: true, faults: usualFaults()},
		"hostile":     {seed: 46, events: 1000, hostile: true, lost: 5, doubled: 5, faults: []planted{{hostileText, hostileText, 1, 42e9, 4e9}}},
		"empty":       {seed: 47},
	}
}

// eachRun runs a test on every made-up run.
func eachRun(t *testing.T, f func(t *testing.T, r *Report)) {
	for name, d := range runs() {
		t.Run(name, func(t *testing.T) { f(t, d.run(t)) })
	}
}

// write is a report in one format, as a string.
func write(t *testing.T, f Format, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := f(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares with a file in testdata, and leaves what it got beside it if they differ.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got)
	if diff == "" {
		return
	}
	other := filepath.Join("testdata", name+".got")
	if err := os.WriteFile(other, []byte(got), 0o644); err != nil {
		t.Error(err)
	}
	t.Errorf("%s differs, see %s (-want +got):\n%s", file, other, diff)
}

// TestLook writes all files of the made-up runs into a folder, for eyes:
//
//	go test -run TestLook -look /tmp/look ./reports
func TestLook(t *testing.T) {
	if *lookAt == "" {
		t.Skip("for eyes only: run with -look DIR")
	}
	eachRun(t, func(t *testing.T, r *Report) {
		dir := filepath.Join(*lookAt, filepath.Base(t.Name()))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := WriteAll(dir, r); err != nil {
			t.Error(err)
		}
		if err := writeFile(filepath.Join(dir, "report.txt"), r, ColorText); err != nil {
			t.Error(err)
		}
	})
}
