package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"floodproof/chaos/cutfs/disk"
)

// fill writes a file of two pages to the disk.
func fill(w *power, name string) error {
	return os.WriteFile(filepath.Join(w.dir, name), make([]byte, 8192), 0o600)
}

// TestFill: a disk that is full when its power is cut is full afterwards, the last of several limits counts, and what each of them met is counted.
func TestFill(t *testing.T) {
	w := newPower(t)
	first, err := w.Fill(t.Context(), disk.Room{Bytes: 8192})
	if err != nil {
		t.Fatal(err)
	}
	writes := func(what string, want error) {
		t.Helper()
		if err := fill(w, what); !errors.Is(err, want) {
			t.Errorf("%s: got error %v, want %v", what, err, want)
		}
	}
	writes("what fits", nil)
	writes("what does not", syscall.ENOSPC)
	second, err := w.Fill(t.Context(), disk.Room{})
	if err != nil {
		t.Fatal(err)
	}
	cutAndRestore(t, w)
	writes("after a cut", syscall.ENOSPC)
	if met, err := second(t.Context()); met != 1 || err != nil {
		t.Errorf("the second: met %d, error %v, want 1", met, err)
	}
	// The first one is in place again, with its room from the beginning.
	writes("what fits again", nil)
	writes("what does not again", syscall.ENOSPC)
	if met, err := first(t.Context()); met != 3 || err != nil {
		t.Errorf("the first: met %d, error %v, want 3", met, err)
	}
	writes("without a limit", nil)
}

// dying is a server that takes its time to end.
type dying struct {
	brokerServer
	runs atomic.Bool
}

func (d *dying) Running() bool { return d.runs.Load() }

// TestCalm: whoever heals waits until a server answers, or has ended and can be started.
func TestCalm(t *testing.T) {
	errAway := errors.New("it is away")
	for _, tt := range []struct {
		name string
		// questions is after how many it answers, lives after how many it has ended.
		questions, lives int
		asked            int
		want             error
	}{
		{"it answers", 1, 9, 1, nil},
		{"it answers in the end", 3, 9, 3, nil},
		{"it ends in the end", 9, 3, 3, nil},
		{"it had ended", 9, 0, 0, nil},
		{"it never does", 1 << 30, 1 << 30, 5, errAway},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, asked := &dying{}, 0
			s.runs.Store(tt.lives > 0)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			b := &broker{name: "fake", address: "127.0.0.1:1", server: s, ready: func(context.Context, string) error {
				asked++
				s.runs.Store(asked < tt.lives)
				if asked == tt.asked && tt.want != nil {
					cancel()
				}
				if asked < tt.questions {
					return errAway
				}
				return nil
			}}
			if err := b.calm(ctx); !errors.Is(err, tt.want) || asked != tt.asked {
				t.Errorf("got error %v after %d questions, want %v after %d", err, asked, tt.want, tt.asked)
			}
		})
	}
	if err := errors.Join((*broker)(nil).calm(t.Context()), (&broker{}).calm(t.Context())); err != nil {
		t.Errorf("without a server of the run's own: %v", err)
	}
}
