package bench_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module is the name that imports of our own begin with.
const module = "floodproof"

// room says what the packages of a folder, tests included, may import of ours besides themselves. The first room that a folder fits decides.
type room struct {
	// folder is a folder, or with "/..." a folder and everything below it.
	folder string
	// mayImport are patterns of the same form.
	mayImport []string
	why       string
}

// rooms is the map: data flows from scenario to report, and only the bench knows everything.
//
// Note: the variant that asks `go list` is cached by the test runner, which does not see that the files changed; it kept
// passing after a violation. Files that the test opens itself are part of the cache's key.
func rooms() []room {
	return []room{
		{"reports/ledger", nil, "the ledger is a leaf, so that anybody can read one"},
		{"scenarios", nil, "scenarios are a leaf: files and their loader"},
		{"loadgen/provider/official", []string{"loadgen/provider", "reference/..."}, "the official libraries are shown what we send, and our receiver what they sign"},
		{"loadgen/provider/...", nil, "providers are a leaf: how they behave does not depend on us"},
		{"reference/...", []string{"reference/..."}, "a user can lift the reference pipeline out whole"},
		{"loadgen/...", []string{"loadgen/...", "reports/ledger"}, "the load generator knows what it sends and where it writes that down"},
		{"chaos/cutfs/brokers", []string{"chaos/cutfs/...", "reference/queue/..."}, "tests that cut a broker's power need brokers"},
		{"chaos/...", []string{"chaos/...", "reports/ledger"}, "faults act on what they are given"},
		{"reports/verdict/...", []string{"reports/ledger"}, "the verdict is a function of the ledger alone"},
		{"reports/...", []string{"reports/..."}, "a report can be made without running anything"},
		{"bench/sink", []string{"reports/ledger", "chaos"}, "the sink records and misbehaves, and knows no pipeline"},
		{"bench/backends", []string{"reference/..."}, "which queues there are does not depend on who asks"},
		{"bench/node", []string{"bench/backends", "reference/..."}, "a process of the pipeline knows no runner: it is to be small"},
		{"bench/floodproof-node", []string{"bench/node"}, "the program is main and nothing else"},
		{"bench/floodproof", []string{"bench"}, "the program is main and nothing else"},
		{"bench", []string{"bench/backends", "bench/harness/...", "bench/node", "bench/live/...", "bench/sink", "chaos/...", "loadgen/...", "reference/...", "reports/...", "scenarios"}, "the command line knows everything but its main"},
		{"bench/...", []string{"bench/backends", "bench/harness/...", "bench/node", "bench/live/...", "bench/sink", "chaos/...", "loadgen/...", "reference/...", "reports/...", "scenarios"}, "below the command line nobody needs it"},
	}
}

func TestImportsFollowTheMap(t *testing.T) {
	root := os.DirFS("..")
	files := 0
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isSkipped(file):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(file) != ".go":
			return nil
		}
		src, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		files++
		found, err := violations(file, src)
		for _, v := range found {
			t.Error(v)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Errorf("looked at %d files, want the whole repository", files)
	}
}

// isSkipped reports folders that hold none of our packages.
func isSkipped(folder string) bool {
	base := path.Base(folder)
	return base != "." && strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || folder == "bin" || folder == "reports/runs"
}

// violations are the imports of one file that the map forbids.
func violations(file string, src []byte) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), src, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("parse imports: %w", err)
	}
	folder := path.Dir(file)
	i := slices.IndexFunc(rooms(), func(r room) bool { return fits(folder, r.folder) })
	if i < 0 {
		return []string{file + ": no room in the map for this folder; add it to rooms with what it may import"}, nil
	}
	r := rooms()[i]
	allowed := append(r.mayImport, folder) // Its own: an external test package.
	var found []string
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("parse import %s: %w", spec.Path.Value, err)
		}
		ours, ok := strings.CutPrefix(imported, module+"/")
		if ok && !slices.ContainsFunc(allowed, func(pattern string) bool { return fits(ours, pattern) }) {
			found = append(found, fmt.Sprintf("%s: imports %s, which %s may not: %s", file, imported, folder, r.why))
		}
	}
	return found, nil
}

// fits reports that a folder is the pattern's, or below it where the pattern ends with "/...".
func fits(folder, pattern string) bool {
	parent, tree := strings.CutSuffix(pattern, "/...")
	return folder == parent || tree && strings.HasPrefix(folder, parent+"/")
}

// TestImportsCheckCatches plants imports in files that exist only here.
func TestImportsCheckCatches(t *testing.T) {
	tests := []struct {
		file, imports string
		caught        bool
	}{
		{"reports/ledger/x.go", "floodproof/reports/verdict", true},
		{"reports/ledger/x.go", "io", false},
		{"reports/ledger/x_test.go", "floodproof/reports/ledger", false},
		{"scenarios/x.go", "floodproof/chaos", true},
		{"scenarios/x_test.go", "floodproof/chaos", true},
		{"loadgen/provider/x.go", "floodproof/loadgen", true},
		{"loadgen/provider/x.go", "floodproof/reports/ledger", true},
		{"loadgen/provider/official/x_test.go", "floodproof/reference/queue", false},
		{"loadgen/provider/official/x_test.go", "floodproof/loadgen", true},
		{"loadgen/x.go", "floodproof/loadgen/provider", false},
		{"loadgen/x.go", "floodproof/reports/ledger", false},
		{"loadgen/x.go", "floodproof/reference", true},
		{"reference/x.go", "floodproof/reference/queue/sqlite", false},
		{"reference/queue/sqlite/x.go", "floodproof/reports/ledger", true},
		{"reference/x_test.go", "floodproof/loadgen/provider", true},
		{"chaos/x.go", "floodproof/bench/sink", true},
		{"reports/verdict/x.go", "floodproof/reports", true},
		{"reports/verdict/x.go", "floodproof/reports/ledger", false},
		{"reports/x.go", "floodproof/reports/verdict", false},
		{"reports/x.go", "floodproof/bench/harness", true},
		{"bench/sink/x.go", "floodproof/chaos", false},
		{"bench/sink/x.go", "floodproof/reference", true},
		{"bench/harness/x.go", "floodproof/reference/queue", false},
		{"bench/harness/x.go", "floodproof/bench", true},
		{"bench/x.go", "floodproof/bench/harness", false},
		{"bench/x.go", "floodproof/bench/floodproof", true},
		{"bench/floodproof/main.go", "floodproof/bench", false},
		{"bench/floodproof/main.go", "floodproof/bench/harness", true},
		{"internal/x.go", "io", true}, // A folder that the map does not know.
		{"referenceless/x.go", "io", true},
	}
	for _, tt := range tests {
		src := fmt.Sprintf("package x\n\nimport _ %q\n", tt.imports)
		got, err := violations(tt.file, []byte(src))
		if err != nil {
			t.Fatal(err)
		}
		if (len(got) > 0) != tt.caught {
			t.Errorf("%s importing %s: caught %v, want %v", tt.file, tt.imports, got, tt.caught)
		}
	}
	got, err := violations("scenarios/x.go", []byte("package x\n\nimport \"floodproof/chaos\"\n"))
	want := []string{"scenarios/x.go: imports floodproof/chaos, which scenarios may not: scenarios are a leaf: files and their loader"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("violation differs (-want +got), error %v:\n%s", err, diff)
	}
}

// heavy are packages that a receiver has no use for: each takes megabytes of the memory of every process that carries it.
func heavy() []string {
	return []string{
		"github.com/nats-io/nats-server/v2/server", "github.com/twmb/franz-go/pkg/kfake", "gonum.org/v1/plot/vg", "github.com/prometheus/client_golang/prometheus",
		"github.com/getsentry/sentry-go", "github.com/tsenart/vegeta/v12/lib", "charm.land/bubbletea/v2", "github.com/hanwen/go-fuse/v2/fuse",
		"floodproof/scenarios", "floodproof/loadgen", "floodproof/reports/ledger", "floodproof/bench/harness",
	}
}

// TestSmallProgramIsSmall keeps out of receivers and workers what only the runner needs. The list of a program's packages is as fresh as the files that the test before opened.
func TestSmallProgramIsSmall(t *testing.T) {
	deps := func(program string) []string {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	small, whole := deps("floodproof/bench/floodproof-node"), deps("floodproof/bench/floodproof")
	for _, p := range heavy() {
		if slices.Contains(small, p) {
			t.Errorf("floodproof-node carries %s", p)
		}
		if !slices.Contains(whole, p) {
			t.Errorf("nothing carries %s any more: the list is out of date", p)
		}
	}
}
