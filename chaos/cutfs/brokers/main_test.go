//go:build linux

package brokers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
	"floodproof/reference/queue"
	"floodproof/reference/queue/nats/child"
	"floodproof/reference/queue/sqlite"
)

// roleVariable makes the test binary one of the processes that the tests start.
const roleVariable = "CUTFS_BROKERS_ROLE"

// natsArgument makes the test binary a NATS server, which what follows it sets.
const natsArgument = "nats-server"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == natsArgument {
		os.Exit(child.Main(os.Args[2:]))
	}
	var err error
	switch os.Getenv(roleVariable) {
	case "":
		goleak.VerifyTestMain(m)
		return
	case "serve":
		err = cutfs.ServeStdin(context.Background())
	case "enqueue":
		err = enqueueForEver(context.Background(), os.Args[1], os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

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
	cfg.Mountpoint = tb.TempDir()
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

// callers is how many enqueue at once.
const callers = 64

// enqueueForEver is a process that enqueues and says which jobs were acknowledged, until it is killed.
func enqueueForEver(ctx context.Context, dir, synchronous string) error {
	q, err := sqlite.Open(ctx, dir, sqlite.Options{Synchronous: synchronous})
	if err != nil {
		return err
	}
	if _, err := fmt.Println("ready"); err != nil { //nolint:forbidigo // the pipe to the test
		return err
	}
	var all errgroup.Group
	var mu sync.Mutex
	for caller := range callers {
		all.Go(func() error {
			for n := 0; ; n++ {
				id := fmt.Sprintf("%d-%d", caller, n)
				if err := q.Enqueue(ctx, job(id)); err != nil {
					return err
				}
				mu.Lock()
				_, err := os.Stdout.WriteString(id + "\n")
				mu.Unlock()
				if err != nil {
					return err
				}
			}
		})
	}
	return all.Wait()
}

func job(id string) queue.Job {
	return queue.Job{Provider: "stripe", EventID: id, DeliveryID: "d", Type: "invoice.paid", Payload: []byte(strings.Repeat(id+" ", 100))}
}

// broker is a process that enqueues, and what it says.
type broker struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
	acked []string
}

func startEnqueuing(t *testing.T, dir, synchronous string) *broker {
	t.Helper()
	cmd := self("enqueue", dir, synchronous)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &broker{cmd: cmd, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	b.read(t, 1)
	return b
}

// read takes n more acknowledgements.
func (b *broker) read(t *testing.T, n int) {
	t.Helper()
	for range n {
		if !b.lines.Scan() {
			t.Fatal("the process that enqueues ended")
		}
		if line := b.lines.Text(); line != "ready" {
			b.acked = append(b.acked, line)
		}
	}
}

// kill ends it and takes what it still had said.
func (b *broker) kill(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for b.lines.Scan() {
		b.acked = append(b.acked, b.lines.Text())
	}
	_ = b.cmd.Wait() // it was killed
}

// missing opens what is left and counts the acknowledged jobs that are not in it.
func (b *broker) missing(t *testing.T, dir string) (missing int) {
	t.Helper()
	q, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatalf("open what the cut left: %v", err)
	}
	defer func() {
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	for _, id := range b.acked {
		e, err := q.Event(t.Context(), "stripe", id)
		switch {
		case errors.Is(err, queue.ErrUnknownEvent):
			missing++
		case err != nil:
			missing++ // its payload is damaged
			t.Logf("%s: %v", id, err)
		case string(e.Payload) != string(job(id).Payload):
			t.Errorf("%s has another payload", id)
		}
	}
	return missing
}

// cut freezes, kills and says what is left under a model.
func cut(t *testing.T, f *cutfs.FS, c cutfs.Cut) (string, cutfs.Result) {
	t.Helper()
	c.Dir = t.TempDir()
	result, err := f.Cut(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return c.Dir, result
}

// TestSQLiteKeepsWhatItAcknowledged cuts the power of the embedded queue under load, and comes back from that instant in every way there is.
func TestSQLiteKeepsWhatItAcknowledged(t *testing.T) {
	f := mount(t, cutfs.Config{})
	b := startEnqueuing(t, f.Mountpoint, sqlite.SynchronousFull)
	b.read(t, 3000)
	if _, err := f.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.kill(t)
	for _, c := range []cutfs.Cut{
		{Model: disk.Ext4Ordered}, {Model: disk.TornLastWrite, Seed: 1}, {Model: disk.TornLastWrite, Seed: 2},
		{Model: disk.RandomSubset, Seed: 1}, {Model: disk.RandomSubset, Seed: 2}, {Model: disk.RandomSectors, Seed: 3},
	} {
		left, result := cut(t, f, c)
		if n := b.missing(t, left); n > 0 {
			t.Errorf("%s, seed %d: %d of %d acknowledged jobs are lost; %+v", c.Model, c.Seed, n, len(b.acked), result.Stats)
		}
	}
}

// TestSQLiteNames: the queue syncs its directories too, as the strictest model asks.
func TestSQLiteNames(t *testing.T) {
	f := mount(t, cutfs.Config{Model: disk.POSIXStrict})
	b := startEnqueuing(t, f.Mountpoint, sqlite.SynchronousFull)
	if err := f.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.read(t, 2000)
	if _, err := f.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.kill(t)
	left, _ := cut(t, f, cutfs.Cut{})
	if n := b.missing(t, left); n > 0 {
		t.Errorf("%d of %d acknowledged jobs are lost", n, len(b.acked))
	}
}

// TestTheCutBites: the same with the setting that does not promise it, and with a disk that lies, must lose something.
func TestTheCutBites(t *testing.T) {
	for name, c := range map[string]struct {
		synchronous string
		model       disk.Model
	}{
		"synchronous=NORMAL":    {sqlite.SynchronousNormal, disk.Ext4Ordered},
		"a disk that lies":      {sqlite.SynchronousFull, disk.FsyncLies},
		"NORMAL and write-back": {sqlite.SynchronousNormal, disk.RandomSubset},
	} {
		t.Run(name, func(t *testing.T) {
			f := mount(t, cutfs.Config{})
			b := startEnqueuing(t, f.Mountpoint, c.synchronous)
			b.read(t, 500)
			if err := f.Arm(t.Context(), c.model); err != nil {
				t.Fatal(err)
			}
			b.read(t, 2000)
			if _, err := f.Freeze(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.kill(t)
			left, result := cut(t, f, cutfs.Cut{Seed: 1})
			if n := b.missing(t, left); n == 0 {
				t.Errorf("all %d acknowledged jobs are there: %+v", len(b.acked), result.Stats)
			} else {
				t.Logf("%d of %d acknowledged jobs are lost", n, len(b.acked))
			}
		})
	}
}
