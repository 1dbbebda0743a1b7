package bench

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestHelpFits: what a verb says of itself fits a terminal of 80 columns, and names the verb.
func TestHelpFits(t *testing.T) {
	asked := [][]string{{"help"}, {"dlq", "list", "-h"}, {"dlq", "show", "-h"}, {"dlq", "redrive", "-h"}, {"dlq", "drop", "-h"}}
	for _, v := range verbs() {
		if !v.hidden && v.name != "help" {
			asked = append(asked, []string{v.name, "-h"})
		}
	}
	for _, args := range asked {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			p := &Program{Args: args, Arg0: "floodproof", Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Version: "test"}
			if status := p.Main(t.Context()); status != ExitPass {
				t.Fatalf("exit status %d, want %d: %s", status, ExitPass, stderr.String())
			}
			if args[0] != "help" && !strings.HasPrefix(stdout.String(), "usage: floodproof "+args[0]) {
				t.Errorf("got %.60q, want the usage of %s", stdout.String(), args[0])
			}
			for line := range strings.Lines(stdout.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > helpWidth {
					t.Errorf("%d columns: %q", n, line)
				}
			}
		})
	}
}
