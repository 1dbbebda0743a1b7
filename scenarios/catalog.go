package scenarios

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files are the scenarios that ship with the program.
//
//go:embed *.yaml
var files embed.FS

// extension is what a scenario file's name ends with.
const extension = ".yaml"

// maxSize bounds a scenario file. The largest shipped one has about 3 kB.
const maxSize = 1 << 20

// ErrUnknownScenario is wrapped by [Open] and [Resolve] when a name is not in the catalogue. The message lists the known ones.
var ErrUnknownScenario = errors.New("unknown scenario")

// Names are the names of the shipped scenarios, sorted.
func Names() []string {
	paths, err := fs.Glob(files, "*"+extension)
	if err != nil {
		panic(err) // The pattern is constant; Glob knows no other error.
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = strings.TrimSuffix(p, extension)
	}
	return names
}

// Open returns the text of a shipped scenario. An error wraps [ErrUnknownScenario].
func Open(name string) ([]byte, error) {
	text, err := files.ReadFile(name + extension)
	if err != nil {
		return nil, fmt.Errorf("%w %q; %s (a path to a file ends with %s)", ErrUnknownScenario, name, didYouMean(name, "scenarios", Names()), extension)
	}
	return text, nil
}

// Resolve finds a scenario by what a user typed: a name of the catalogue, or a path, which is anything with a
// separator or with the extension .yaml or .yml. The name is what [Load] takes, so that error lines show the path.
func Resolve(nameOrPath string) (name string, text []byte, err error) {
	if !isPath(nameOrPath) {
		text, err = Open(nameOrPath)
		return nameOrPath, text, err
	}
	text, err = readFile(nameOrPath)
	if err != nil {
		return "", nil, fmt.Errorf("read scenario: %w", err)
	}
	return nameOrPath, text, nil
}

// readFile reads one byte more than allowed at most, so that Load can say that a file is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	return text, errors.Join(err, f.Close())
}

func isPath(s string) bool {
	return strings.ContainsAny(s, `/\`) || filepath.Ext(s) == extension || filepath.Ext(s) == ".yml"
}

// label is how error lines call the file.
func label(nameOrPath string) string {
	if isPath(nameOrPath) {
		return nameOrPath
	}
	return nameOrPath + extension
}

// baseName is the scenario's name: the file's base name without extension.
func baseName(nameOrPath string) string {
	if !isPath(nameOrPath) {
		return nameOrPath
	}
	base := filepath.Base(filepath.FromSlash(nameOrPath))
	return strings.TrimSuffix(base, filepath.Ext(base))
}
