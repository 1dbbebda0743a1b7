//go:build linux

package cutfs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// roleVariable makes the test binary one of the processes that the tests start.
const roleVariable = "CUTFS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		goleak.VerifyTestMain(m)
	case "serve":
		if err := cutfs.ServeStdin(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		if err := playRole(role, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// self is the test binary in a role.
func self(role string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// mount mounts for one test. Where there is no FUSE the test is skipped, or fails where everything is required.
func mount(tb testing.TB, cfg cutfs.Config) *cutfs.FS {
	tb.Helper()
	if err := cutfs.Available(); err != nil {
		if os.Getenv("FLOODPROOF_REQUIRE") != "" {
			tb.Fatal(err)
		}
		tb.Skipf("SKIPPED: %v", err)
	}
	if cfg.Mountpoint == "" {
		cfg.Mountpoint = tb.TempDir()
	}
	f, err := cutfs.Mount(tb.Context(), func() *exec.Cmd { return self("serve") }, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return f
}

// cut cuts the power and returns the directory with what is left.
func cut(t *testing.T, f *cutfs.FS, model disk.Model, seed uint64) (string, cutfs.Result) {
	t.Helper()
	dir := t.TempDir()
	result, err := f.Cut(t.Context(), cutfs.Cut{Model: model, Seed: seed, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return dir, result
}
