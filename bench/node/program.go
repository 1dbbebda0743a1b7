package node

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// Program is the name of the program that is nothing but this package.
	Program = "floodproof-node"
	// VersionRole is the role in which that program says its [Stamp], and ends.
	VersionRole = "version"
	// answerWithin is how long it may take for that.
	answerWithin = 5 * time.Second
)

// Stamp is how two programs of one build know each other; empty for a build that carries no version, which knows nobody.
func Stamp(version, commit string) string { return strings.TrimSpace(version + " " + commit) }

// Beside is the path of the program that lies beside the one at path and has its stamp, empty if there is none: a program of another build may understand something else by
// what it is told.
func Beside(ctx context.Context, path, stamp string) string {
	if stamp == "" {
		return ""
	}
	name := Program
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	candidate := filepath.Join(filepath.Dir(path), name)
	said, err := exec.CommandContext(ctx, candidate, VersionRole).Output()
	if err != nil || strings.TrimSpace(string(said)) != stamp {
		return ""
	}
	return candidate
}
