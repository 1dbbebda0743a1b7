package live

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	look   = flag.Bool("look", false, "play a made-up run on this terminal for TestLook")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// madeUp is a run of 40 seconds as a function of its age.
func madeUp(age time.Duration) Snapshot {
	s := Snapshot{Scenario: "10k-day", Backend: "sqlite", Planned: 10_000, Elapsed: age, Scale: 1}
	sec := age.Seconds()
	switch {
	case age < time.Second:
		return s
	case age < 30*time.Second:
		s.Phase, s.Segment, s.Scale, s.Day = Running, "night", 3600, time.Duration((sec-1)*float64(time.Hour))
		if age >= 10*time.Second {
			s.Segment, s.Scale, s.Day = "busiest-hour", 20, 9*time.Hour+time.Duration((sec-10)*20*float64(time.Second))
		}
		s.Left, s.InFlight = 38*time.Second-age, 12
	case age < 38*time.Second:
		s.Phase = Draining
	case age < 40*time.Second:
		s.Phase = Judging
	default:
		s.Phase = Done
	}
	s.Sent = int64(min((sec-1)*345, 10_000))
	s.Acked = max(s.Sent-12, 0)
	s.Applied = s.Acked - min(s.Acked, 30)
	if age > 15*time.Second && age < 18*time.Second {
		s.Faults = []string{"worker.kill worker-1"}
	}
	if age > 15*time.Second && age < 22*time.Second {
		// Nothing is applied for three seconds, then the pipeline catches up at twice its rate.
		s.Applied = min(s.Applied, 4788+int64(max(sec-18, 0)*800))
	}
	if s.Phase > Running {
		s.Sent, s.Acked, s.Applied = 10_000, 10_000, 10_000
	}
	s.Backlog, s.Retries, s.AckP99 = s.Acked-s.Applied, 3, 34*time.Millisecond
	return s
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.ReplaceAll(string(want), "\r\n", "\n"), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", file, diff)
	}
}

func TestPlainRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		start := time.Now()
		err := NewPlain(&out).Run(t.Context(), func() Snapshot { return madeUp(time.Since(start)) })
		if err != nil {
			t.Errorf("Run: %v", err)
		}
		golden(t, "plain.golden", out.String())
	})
}

func TestPlainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+pause/2)
		defer cancel()
		start := time.Now()
		if err := NewPlain(&bytes.Buffer{}).Run(ctx, func() Snapshot { return madeUp(0) }); err != nil {
			t.Errorf("Run: %v", err)
		}
		if got, want := time.Since(start), 2*time.Second+pause/2; got != want {
			t.Errorf("ended after %v, want %v, the instant of the context", got, want)
		}
	})
}

type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestPlainReportsAWriteError(t *testing.T) {
	err := NewPlain(brokenPipe{}).Run(t.Context(), func() Snapshot { return madeUp(0) })
	if !errors.Is(err, errBroken) {
		t.Errorf("Run = %v, want %v", err, errBroken)
	}
}

func TestMissing(t *testing.T) {
	tests := []struct {
		name             string
		prev, next, want []string
	}{
		{"nothing", nil, nil, nil},
		{"new", []string{"a"}, []string{"a", "b"}, []string{"b"}},
		{"gone is not new", []string{"a", "b"}, []string{"a"}, nil},
		{"twice at once", []string{"a"}, []string{"a", "a"}, []string{"a"}},
		{"one of two gone", []string{"a", "a"}, []string{"a"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, missing(tt.prev, tt.next)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// played is the frame after the first part of the made-up run.
func played(until time.Duration) *frame {
	var f frame
	for age := time.Duration(0); age <= until; age += pause {
		f.add(madeUp(age))
	}
	return &f
}

func TestRenderGolden(t *testing.T) {
	var b strings.Builder
	for _, at := range []time.Duration{0, 5 * time.Second, 16 * time.Second, 29 * time.Second, 35 * time.Second, 39 * time.Second} {
		b.WriteString("--- " + at.String() + "\n" + render(played(at), 80, bare) + "\n")
	}
	b.WriteString("--- 16s, 50 columns\n" + render(played(16*time.Second), 50, bare) + "\n")
	golden(t, "terminal.golden", b.String())
}

func TestRenderFitsItsWidth(t *testing.T) {
	hostile := played(29 * time.Second)
	hostile.now.Scenario = strings.Repeat("x", 300) + "\x1b[2J\nmore"
	hostile.now.Faults = []string{"a\nb", strings.Repeat("disk.full ", 30)}
	hostile.now.Sent, hostile.now.Planned = 1<<62, 1
	for name, f := range map[string]*frame{"empty": {}, "early": played(3 * time.Second), "late": played(29 * time.Second), "hostile": hostile} {
		for _, width := range []int{0, 1, 12, 20, 40, 79, 80, 81, 200} {
			lines := strings.Split(render(f, width, bare), "\n")
			if got, want := len(lines), 9; got != want {
				t.Errorf("%s at %d columns: %d lines, want %d in every frame", name, width, got, want)
			}
			for _, l := range lines {
				if got, limit := utf8.RuneCountInString(l), max(width, 11); got >= limit {
					t.Errorf("%s at %d columns: line of %d characters: %q", name, width, got, l)
				}
				if strings.ContainsAny(l, "\x1b\r\t") {
					t.Errorf("%s: control character in %q", name, l)
				}
			}
		}
	}
}

func TestColourChangesNoCharacter(t *testing.T) {
	f := played(16 * time.Second)
	got := render(f, 80, ansi)
	for _, code := range []string{"0", "1", "2", "32", "1;31"} {
		got = strings.ReplaceAll(got, "\x1b["+code+"m", "")
	}
	if diff := cmp.Diff(render(f, 80, bare), got); diff != "" {
		t.Errorf("colour changed the text (-bare +coloured):\n%s", diff)
	}
}

func TestSpark(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		n      int
		want   string
	}{
		{"none", nil, 10, ""},
		{"no room", []float64{1, 2}, -3, ""},
		{"all zero", []float64{0, 0, 0}, 10, "▁▁▁"},
		{"from zero to the top", []float64{0, 1, 2, 3, 4, 5, 6, 7}, 10, "▁▂▃▄▅▆▇█"},
		{"the newest stay", []float64{9, 9, 0, 1}, 2, "▁█"},
		{"never below zero", []float64{-5, 10}, 2, "▁█"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := spark(tt.values, tt.n); got != tt.want {
				t.Errorf("spark = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var f frame
	for i := range 10 * memory {
		f.add(Snapshot{Elapsed: time.Duration(i) * step, Acked: int64(3 * i)})
	}
	if got := len(f.past); got != memory {
		t.Errorf("%d points, want %d", got, memory)
	}
	for _, r := range f.rates(func(p point) int64 { return p.acked }) {
		if r != 3 {
			t.Fatalf("rate %v, want 3 a second", r)
		}
	}
}

func TestNewChoosesThePlainViewForAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, ok := New(f).(*plain); !ok {
		t.Errorf("New(file) = %T, want the plain view", New(f))
	}
}

// TestTerminalCleansUp runs the terminal view into a file and reads what it did to the cursor.
func TestTerminalCleansUp(t *testing.T) {
	done := func() func() Snapshot {
		n := 0
		return func() Snapshot {
			if n++; n > 2 {
				return madeUp(40 * time.Second)
			}
			return madeUp(16 * time.Second)
		}
	}
	cancelled := func(cancel func()) func() Snapshot {
		n := 0
		return func() Snapshot {
			if n++; n == 2 {
				cancel()
			}
			return madeUp(16 * time.Second)
		}
	}
	for _, name := range []string{"done", "cancelled"} {
		t.Run(name, func(t *testing.T) {
			f, err := os.Create(filepath.Join(t.TempDir(), "screen"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			next := done()
			if name == "cancelled" {
				next = cancelled(cancel)
			}
			if err := NewTerminal(f).Run(ctx, next); err != nil {
				t.Fatalf("Run: %v", err)
			}
			b, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			const hide, show = "\x1b[?25l", "\x1b[?25h"
			if s := string(b); strings.LastIndex(s, show) < strings.LastIndex(s, hide) {
				t.Errorf("the cursor stays hidden: %q", s)
			}
			if s := string(b); strings.Contains(s, "\x1b[?1049h") || strings.Contains(s, "\x1b[?2004h") {
				t.Errorf("the view took the screen or the input: %q", s)
			}
		})
	}
}

// TestLook plays the made-up run on a real terminal, for eyes:
//
//	go test -c -o /tmp/live.test ./bench/live && /tmp/live.test -test.run TestLook -look
func TestLook(t *testing.T) {
	if !*look {
		t.Skip("for eyes only: run the compiled test with -look on a terminal")
	}
	start := time.Now()
	if err := New(os.Stdout).Run(t.Context(), func() Snapshot { return madeUp(time.Since(start)) }); err != nil {
		t.Fatal(err)
	}
}
