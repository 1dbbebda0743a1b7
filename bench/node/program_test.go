//go:build unix

package node

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBeside: only a program of the same build is one to use.
func TestBeside(t *testing.T) {
	tests := []struct {
		name, script string
		stamp        string
		found        bool
	}{
		{"the same build", "echo v1 abc", "v1 abc", true},
		{"another build", "echo v1 abd", "v1 abc", false},
		{"it fails", "echo v1 abc; exit 1", "v1 abc", false},
		{"both without a version", "echo", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			want := filepath.Join(dir, Program)
			script := "#!/bin/sh\n[ \"$1\" = " + VersionRole + " ] || exit 1\n" + tt.script + "\n"
			if err := os.WriteFile(want, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			if !tt.found {
				want = ""
			}
			if got := Beside(t.Context(), filepath.Join(dir, "floodproof"), tt.stamp); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	if got := Beside(t.Context(), filepath.Join(t.TempDir(), "floodproof"), "v1"); got != "" {
		t.Errorf("nothing is there: got %q", got)
	}
}

func TestStamp(t *testing.T) {
	for want, in := range map[string][2]string{"": {}, "v1": {"v1", ""}, "v1 abc": {"v1", "abc"}} {
		if got := Stamp(in[0], in[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
