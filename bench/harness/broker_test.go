package harness

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/bench/backends"
)

func TestDescribe(t *testing.T) {
	settings := map[string]string{"appendfsync": "always"}
	b := &broker{way: backends.Way{Kind: "container", Detail: "redis:7.4.1"}}
	want := map[string]string{"appendfsync": "always", "server": "container redis:7.4.1"}
	if diff := cmp.Diff(want, b.describe(settings)); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
	if len(settings) != 1 {
		t.Errorf("the claims of the queue were changed: %v", settings)
	}
	if diff := cmp.Diff(settings, (*broker)(nil).describe(settings)); diff != "" {
		t.Errorf("an embedded queue's settings differ (-want +got):\n%s", diff)
	}
}

func TestGuardUndoes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs touch")
	}
	dir := t.TempDir()
	left, kept := filepath.Join(dir, "left"), filepath.Join(dir, "kept")
	lines := `undo ["touch","` + left + `"]` + "\n" + `undo ["touch","` + kept + `"]` + "\n" + `undone ["touch","` + kept + `"]` + "\n"
	if err := Guard(strings.NewReader(lines)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err != nil {
		t.Errorf("what was left behind was not undone: %v", err)
	}
	if _, err := os.Stat(kept); err == nil {
		t.Error("what was not needed any more was undone")
	}
	if err := Guard(strings.NewReader(`undo ["false"]` + "\n")); err == nil {
		t.Error("a command that failed was passed over")
	}
}
