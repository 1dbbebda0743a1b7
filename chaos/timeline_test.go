package chaos_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"floodproof/chaos"
	"floodproof/reports/ledger"
)

// fake is a fault of which a test decides everything.
type fake struct {
	name   string
	inject func(context.Context, uint32) (string, func(context.Context) error, error)
}

func (f fake) Name() string    { return f.name }
func (fake) Side() ledger.Side { return ledger.Broker }
func (f fake) Inject(ctx context.Context, n uint32) (string, func(context.Context) error, error) {
	return f.inject(ctx, n)
}

// slow takes its time to inject and to heal.
func slow(name string, inject, heal time.Duration) fake {
	return fake{name, func(context.Context, uint32) (string, func(context.Context) error, error) {
		<-time.After(inject)
		return "target", func(context.Context) error { <-time.After(heal); return nil }, nil
	}}
}

// stage is a timeline whose records a test can read as lines.
type stage struct {
	*chaos.Timeline
	records []ledger.Fault
}

// newStage must be called in a bubble: offsets count from now.
func newStage(steps ...chaos.Step) *stage {
	start := time.Now()
	s := &stage{}
	s.Timeline = &chaos.Timeline{
		Steps:  steps,
		Record: func(f ledger.Fault) { s.records = append(s.records, f) },
		Now:    func() time.Duration { return time.Since(start) },
	}
	return s
}

var phases = map[ledger.Phase]string{ledger.Begin: "begin", ledger.Heal: "heal", ledger.Broken: "broken", ledger.NotApplicable: "not-applicable", ledger.Unmet: "unmet"}

func (s *stage) lines() []string {
	var list []string
	for _, r := range s.records {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%v #%d step %d %s %s %s", r.At, r.Number, r.Step, phases[r.Phase], r.Name, r.Note)))
	}
	return list
}

func (s *stage) want(t *testing.T, lines ...string) {
	t.Helper()
	if diff := gocmp.Diff(lines, s.lines()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// elsewhere is a fault that has nothing to do with the queue's server.
type elsewhere struct{ fake }

func (elsewhere) Side() ledger.Side { return ledger.Worker }

func TestNothingBreaksWhatIsBeingStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(
			chaos.Step{Fault: slow("kill", 0, 4*time.Second), At: time.Second, For: time.Second},
			chaos.Step{Fault: slow("within", 0, 0), At: 1500 * time.Millisecond},
			chaos.Step{Fault: slow("waits", 0, 3*time.Second), At: 3 * time.Second},
			chaos.Step{Fault: elsewhere{slow("elsewhere", 0, 0)}, At: 4 * time.Second},
			chaos.Step{Fault: slow("waits longer", 0, 0), At: 7 * time.Second},
		)
		if err := s.Play(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.want(t,
			"1s #0 step 0 begin kill",
			"1.5s #1 step 1 begin within",
			"1.5s #1 step 1 heal within",
			"4s #2 step 3 begin elsewhere",
			"4s #2 step 3 heal elsewhere",
			"6s #0 step 0 heal kill",
			"6s #3 step 2 begin waits",
			"9s #3 step 2 heal waits",
			"9s #4 step 4 begin waits longer",
			"9s #4 step 4 heal waits longer",
		)
	})
}

func TestWaitingForAHealEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(
			chaos.Step{Fault: slow("kill", 0, 10*time.Second)},
			chaos.Step{Fault: slow("never", 0, 0), At: time.Second},
		)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := s.Play(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		s.want(t, "0s #0 step 0 begin kill", "10s #0 step 0 heal kill")
	})
}

func TestPlayOneSegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(
			chaos.Step{Fault: slow("a", 0, 0), Segment: 1, At: 2 * time.Second, For: 3 * time.Second},
			chaos.Step{Fault: slow("never", 0, 0), Segment: 0},
			chaos.Step{Fault: slow("b", 0, 0), Segment: 1, At: 3 * time.Second},
			chaos.Step{Fault: slow("c", 0, 0), Segment: 2, At: time.Second, For: time.Second},
		)
		pass(time.Minute)
		if err := s.Play(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := s.Play(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		if err := s.Play(t.Context(), 3); err != nil {
			t.Fatal(err)
		}
		s.want(t,
			"1m2s #0 step 0 begin a", "1m3s #1 step 2 begin b", "1m3s #1 step 2 heal b", "1m5s #0 step 0 heal a",
			"1m6s #2 step 3 begin c", "1m7s #2 step 3 heal c",
		)
		first := s.records[0]
		if first.Side != ledger.Broker || first.Target != "target" {
			t.Errorf("first record: got side %d and target %q", first.Side, first.Target)
		}
	})
}

func TestRepetitionsWaitForEachOther(t *testing.T) {
	tests := []struct {
		name string
		step chaos.Step
		want []string
	}{
		{"evenly", chaos.Step{Fault: slow("f", 0, 0), At: time.Second, For: time.Second, Every: 5 * time.Second, Times: 3}, []string{
			"1s #0 step 0 begin f", "2s #0 step 0 heal f", "6s #1 step 0 begin f", "7s #1 step 0 heal f", "11s #2 step 0 begin f", "12s #2 step 0 heal f"}},
		{"healing takes too long", chaos.Step{Fault: slow("f", 0, 6*time.Second), For: time.Second, Every: 5 * time.Second, Times: 3}, []string{
			"0s #0 step 0 begin f", "7s #0 step 0 heal f", "7s #1 step 0 begin f", "14s #1 step 0 heal f", "14s #2 step 0 begin f", "21s #2 step 0 heal f"}},
		{"the duration counts from the call of Inject", chaos.Step{Fault: slow("f", 2*time.Second, 0), For: 3 * time.Second}, []string{
			"0s #0 step 0 begin f", "3s #0 step 0 heal f"}},
		{"an injection longer than the duration", chaos.Step{Fault: slow("f", 2*time.Second, 0), For: time.Second}, []string{
			"0s #0 step 0 begin f", "2s #0 step 0 heal f"}},
		{"no Every means once", chaos.Step{Fault: slow("f", 0, 0), Times: 3}, []string{
			"0s #0 step 0 begin f", "0s #0 step 0 heal f"}},
		{"no Times means once", chaos.Step{Fault: slow("f", 0, 0), Every: time.Second}, []string{
			"0s #0 step 0 begin f", "0s #0 step 0 heal f"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(tt.step)
				if err := s.Play(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				s.want(t, tt.want...)
			})
		})
	}
}

func TestPlayKnowsTheNumberBeforehand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []uint32
		f := fake{"f", func(_ context.Context, n uint32) (string, func(context.Context) error, error) {
			got = append(got, n)
			return "", func(context.Context) error { return nil }, nil
		}}
		s := newStage(chaos.Step{Fault: f, Every: time.Second, Times: 3})
		if err := s.Play(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff([]uint32{0, 1, 2}, got); diff != "" {
			t.Errorf("numbers (-want +got):\n%s", diff)
		}
	})
}

func TestCancelHealsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("the user has had enough")
		healedWith := errBroken
		f := fake{"f", func(context.Context, uint32) (string, func(context.Context) error, error) {
			return "x", func(ctx context.Context) error {
				if d, ok := ctx.Deadline(); !ok || time.Until(d) != chaos.DefaultTimeout {
					t.Errorf("deadline of the heal: got %v, %t", time.Until(d), ok)
				}
				healedWith = ctx.Err()
				return nil
			}, nil
		}}
		s := newStage(
			chaos.Step{Fault: f, At: time.Second, For: time.Hour, Every: 2 * time.Hour, Times: 5},
			chaos.Step{Fault: slow("later", 0, 0), At: time.Minute},
		)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(10*time.Second, func() { cancel(stop) })
		if err := s.Play(ctx, 0); !errors.Is(err, stop) {
			t.Errorf("Play: got error %v, want the cause", err)
		}
		if healedWith != nil {
			t.Errorf("the heal's context was done: %v", healedWith)
		}
		s.want(t, "1s #0 step 0 begin f", "10s #0 step 0 heal f")
		if err := s.Play(ctx, 0); !errors.Is(err, stop) {
			t.Errorf("Play after the end: got error %v", err)
		}
		s.want(t, "1s #0 step 0 begin f", "10s #0 step 0 heal f")
	})
}

func TestBrokenFaultsStopNothingElse(t *testing.T) {
	heal := func(err error) func(context.Context) error { return func(context.Context) error { return err } }
	tests := []struct {
		name   string
		inject func(context.Context, uint32) (string, func(context.Context) error, error)
		want   []string
	}{
		{"inject fails", func(context.Context, uint32) (string, func(context.Context) error, error) { return "", nil, errBroken },
			[]string{"0s #0 step 0 broken bad inject: broken on purpose"}},
		{"inject panics", func(context.Context, uint32) (string, func(context.Context) error, error) { panic("oh") },
			[]string{"0s #0 step 0 broken bad inject: panic: oh"}},
		{"no heal", func(context.Context, uint32) (string, func(context.Context) error, error) { return "", nil, nil },
			[]string{"0s #0 step 0 broken bad inject: the fault gave no heal"}},
		{"inject takes too long", func(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
			<-ctx.Done()
			return "", nil, ctx.Err()
		}, []string{"0s #0 step 0 broken bad inject: context deadline exceeded"}},
		{"heal fails", func(context.Context, uint32) (string, func(context.Context) error, error) {
			return "", heal(errBroken), nil
		},
			[]string{"0s #0 step 0 begin bad", "1s #0 step 0 broken bad heal: broken on purpose"}},
		{"heal says that nobody met it", func(context.Context, uint32) (string, func(context.Context) error, error) {
			return "", heal(fmt.Errorf("a link: %w", chaos.ErrUnmet)), nil
		},
			[]string{"0s #0 step 0 begin bad", "1s #0 step 0 unmet bad", "1s #0 step 0 heal bad"}},
		{"heal panics", func(context.Context, uint32) (string, func(context.Context) error, error) {
			return "", func(context.Context) error { panic("oh") }, nil
		}, []string{"0s #0 step 0 begin bad", "1s #0 step 0 broken bad heal: panic: oh"}},
		{"heal takes too long", func(context.Context, uint32) (string, func(context.Context) error, error) {
			return "", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil
		}, []string{"0s #0 step 0 begin bad", "16s #0 step 0 broken bad heal: context deadline exceeded"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage(
					chaos.Step{Fault: fake{"bad", tt.inject}, For: time.Second},
					chaos.Step{Fault: slow("good", 0, 0), At: time.Minute, For: time.Second},
				)
				if err := s.Play(t.Context(), 0); err != nil {
					t.Errorf("Play: got error %v, want none", err)
				}
				s.want(t, append(tt.want, "1m0s #1 step 1 begin good", "1m1s #1 step 1 heal good")...)
				if got := s.Current(); len(got) > 0 {
					t.Errorf("still in place: %v", got)
				}
			})
		})
	}
}

func TestInterruptedInjectionIsBrokenAndEndsThePlay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fake{"f", func(ctx context.Context, _ uint32) (string, func(context.Context) error, error) {
			<-ctx.Done()
			return "", nil, context.Cause(ctx)
		}}
		s := newStage(chaos.Step{Fault: f, Every: time.Second, Times: 9})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Play(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Play: got error %v", err)
		}
		s.want(t, "0s #0 step 0 broken f inject: context deadline exceeded")
	})
}

func TestNotApplicableIsRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(
			chaos.Step{Fault: chaos.NotApplicable{Kind: kind(t, "queue.hold"), Why: "the queue is not ours"}, At: time.Hour, Every: time.Second, Times: 4},
			chaos.Step{Fault: slow("f", 0, 0), At: time.Second},
		)
		if err := s.Play(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		s.want(t, "0s #0 step 0 not-applicable queue.hold the queue is not ours", "1s #1 step 1 begin f", "1s #1 step 1 heal f")
	})
}

func TestCurrentNamesWhatIsInPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(&diary{}, "worker", 1)
		s := newStage(
			chaos.Step{Fault: newFault(t, "worker.kill", nil, chaos.Deps{Fleet: f}), At: time.Second, For: 10 * time.Second},
			chaos.Step{Fault: slow("other", 0, 0), At: 2 * time.Second, For: 2 * time.Second},
		)
		played := make(chan error, 1)
		go func() { played <- s.Play(t.Context(), 0) }()
		start := time.Now()
		seen := make(map[time.Duration][]string)
		for _, at := range []time.Duration{0, 1500, 3000, 5000, 12000} {
			at *= time.Millisecond
			pass(at - time.Since(start))
			seen[at] = s.Current()
		}
		if err := <-played; err != nil {
			t.Fatal(err)
		}
		want := map[time.Duration][]string{
			0: {}, 1500 * time.Millisecond: {"worker.kill worker-1"}, 3 * time.Second: {"worker.kill worker-1", "other target"},
			5 * time.Second: {"worker.kill worker-1"}, 12 * time.Second: {},
		}
		if diff := gocmp.Diff(want, seen); diff != "" {
			t.Errorf("in place (-want +got):\n%s", diff)
		}
	})
}

// TestManyStepsShareNumbers: numbers are dense and unique although steps run side by side.
func TestManyStepsShareNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var steps []chaos.Step
		for range 20 {
			steps = append(steps, chaos.Step{Fault: slow("f", 0, time.Millisecond), For: time.Millisecond, Every: time.Millisecond, Times: 5})
		}
		s := newStage(steps...)
		if err := s.Play(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var begins []ledger.Fault
		for _, r := range s.records {
			if r.Phase == ledger.Begin {
				begins = append(begins, r)
			}
		}
		slices.SortFunc(begins, func(a, b ledger.Fault) int { return cmp.Compare(a.Number, b.Number) })
		for i, b := range begins {
			if int(b.Number) != i {
				t.Fatalf("number %d at place %d", b.Number, i)
			}
		}
		if len(begins) != 100 || len(s.records) != 200 {
			t.Errorf("got %d begins of %d records, want 100 of 200", len(begins), len(s.records))
		}
	})
}

func TestTooManyStepsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steps := make([]chaos.Step, 257)
		for i := range steps {
			steps[i].Fault = slow("f", 0, 0)
		}
		if err := newStage(steps[:256]...).Play(t.Context(), 0); err != nil {
			t.Errorf("256 steps: %v", err)
		}
		s := newStage(steps...)
		if err := s.Play(t.Context(), 0); err == nil || len(s.records) > 0 {
			t.Errorf("257 steps: got error %v and %d records", err, len(s.records))
		}
	})
}
