package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/reports/ledger"
)

// DefaultTimeout is how long an injection and a heal may take where [Timeline].Timeout is 0.
const DefaultTimeout = 15 * time.Second

// Step is one line of a scenario's chaos: which fault, when, how long and how often.
type Step struct {
	// Fault is what happens. A [NotApplicable] is recorded and skipped.
	Fault Fault
	// Segment is the segment in which the step is played.
	Segment int
	// At is the real time from the call of Play to the first injection.
	At time.Duration
	// For is how long an injection lasts, counted from the call of Inject; 0 heals at once.
	For time.Duration
	// Every is the real time from one injection to the next, 0 means that there is only one.
	Every time.Duration
	// Times is how many injections there are if Every is not 0; below 1 means 1.
	Times int
}

// repetitions is how many injections the step has.
func (s Step) repetitions() int {
	if s.Every <= 0 {
		return 1
	}
	return max(1, s.Times)
}

// Timeline plays the faults of a scenario. Its exported fields are set before the first Play and not changed after; it must not be copied.
type Timeline struct {
	// Steps are the scenario's list, in its order: a step's index is its number in the ledger. At most 256.
	Steps []Step
	// Record writes a point in a fault's life down. It is called by one goroutine at a time.
	Record func(ledger.Fault)
	// Now is the offset since the start of the run, by the clock of the ledger. It must be safe for concurrent use.
	Now func() time.Duration
	// Timeout bounds each injection and each heal, separately. 0 means [DefaultTimeout].
	Timeout time.Duration

	mu     sync.Mutex
	next   uint32
	active []injection
	// mending is how many heals are under way that start the queue's server, and mended is closed when none is any more.
	mending int
	mended  chan struct{}
}

// injection is one that is in place.
type injection struct {
	number uint32
	label  string
}

// Play plays the steps of one segment, with times counted from now: the steps side by side, the repetitions of a step one after the other. One that would begin
// before the one before it was healed waits for that. What breaks the queue's server or its disk waits, too, while another such fault is being healed: the server is
// being started then, and what is not there can neither be stopped nor stalled, and does not come up from a disk that fails. Faults that lie within each other do not wait.
//
// Play returns when everything that it injected was healed. When ctx is done, what is in place is healed at once, under a context of
// its own, nothing more is injected, and Play returns the cause. Otherwise it returns nil (but for more than 256 steps, of which it plays none): a fault that cannot be injected or healed, or that panics, is
// recorded as broken and stops nothing else; the verdict makes of it what it must.
func (t *Timeline) Play(ctx context.Context, segment int) error {
	if len(t.Steps) > math.MaxUint8+1 {
		return fmt.Errorf("play %d steps: the ledger numbers at most %d", len(t.Steps), math.MaxUint8+1)
	}
	var group errgroup.Group
	for i, step := range t.Steps {
		if step.Segment != segment {
			continue
		}
		group.Go(func() error { return t.play(ctx, uint8(i), step) })
	}
	return group.Wait()
}

// Current names what is in place now, oldest first: "worker.kill worker-1". It is safe for concurrent use.
func (t *Timeline) Current() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	labels := make([]string, 0, len(t.active))
	for _, a := range t.active {
		labels = append(labels, a.label)
	}
	return labels
}

func (t *Timeline) play(ctx context.Context, place uint8, step Step) error {
	if na, ok := step.Fault.(NotApplicable); ok {
		t.record(t.begin(place, na).in(ledger.NotApplicable, na.Why))
		return nil
	}
	start := time.Now()
	for n := range step.repetitions() {
		due := start.Add(step.At + time.Duration(n)*step.Every)
		if err := sleep(ctx, time.Until(due)); err != nil {
			return err
		}
		if err := t.once(ctx, place, step); err != nil {
			return err
		}
	}
	return nil
}

// once injects, waits and heals. Its error is the end of ctx.
func (t *Timeline) once(ctx context.Context, place uint8, step Step) error {
	if err := t.awaitMended(ctx, step.Fault); err != nil {
		return err
	}
	begun := time.Now()
	entry := t.begin(place, step.Fault)
	target, heal, err := t.inject(ctx, step.Fault, entry.Number)
	entry.Target = target
	if err != nil {
		t.record(entry.in(ledger.Broken, "inject: "+err.Error()))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	t.record(entry.in(ledger.Begin, ""))
	t.show(injection{number: entry.Number, label: strings.TrimSpace(entry.Name + " " + target)})
	cut := sleep(ctx, time.Until(begun.Add(step.For)))

	err = t.heal(ctx, step.Fault, heal)
	t.hide(entry.Number)
	entry.At = t.Now()
	if errors.Is(err, ErrUnmet) {
		t.record(entry.in(ledger.Unmet, ""))
		err = nil
	}
	if err != nil {
		t.record(entry.in(ledger.Broken, "heal: "+err.Error()))
	} else {
		t.record(entry.in(ledger.Heal, ""))
	}
	return cut
}

// entry is what the records of one injection share.
type entry ledger.Fault

func (e entry) in(phase ledger.Phase, note string) ledger.Fault {
	e.Phase, e.Note = phase, note
	return ledger.Fault(e)
}

// begin numbers an injection and takes its time: before Inject, so that no effect of the fault is older than its begin.
func (t *Timeline) begin(place uint8, f Fault) entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := entry{At: t.Now(), Number: t.next, Step: place, Side: f.Side(), Name: f.Name()}
	t.next++
	return e
}

func (t *Timeline) inject(ctx context.Context, f Fault, number uint32) (target string, heal func(context.Context) error, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout())
	defer cancel()
	err = guarded(func() (err error) {
		target, heal, err = f.Inject(ctx, number)
		if err == nil && heal == nil {
			err = errors.New("the fault gave no heal")
		}
		return err
	})
	return target, heal, err
}

func (t *Timeline) heal(ctx context.Context, f Fault, heal func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.timeout())
	defer cancel()
	if breaksQueue(f) {
		t.beginMending()
		defer t.endMending()
	}
	return guarded(func() error { return heal(ctx) })
}

// breaksQueue reports whether a fault is about the queue's server or its disk.
func breaksQueue(f Fault) bool { return f.Side() == ledger.Broker || f.Side() == ledger.Disk }

// awaitMended returns when nothing is being healed that such a fault would meet half started. Its error is the end of ctx.
func (t *Timeline) awaitMended(ctx context.Context, f Fault) error {
	for breaksQueue(f) {
		t.mu.Lock()
		mending, mended := t.mending > 0, t.mended
		t.mu.Unlock()
		if !mending {
			return nil
		}
		select {
		case <-mended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (t *Timeline) beginMending() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mending == 0 {
		t.mended = make(chan struct{})
	}
	t.mending++
}

func (t *Timeline) endMending() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mending--; t.mending == 0 {
		close(t.mended)
	}
}

func (t *Timeline) timeout() time.Duration {
	if t.Timeout > 0 {
		return t.Timeout
	}
	return DefaultTimeout
}

func (t *Timeline) record(f ledger.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Record(f)
}

func (t *Timeline) show(in injection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active = append(t.active, in)
}

func (t *Timeline) hide(number uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, a := range t.active {
		if a.number == number {
			t.active = append(t.active[:i:i], t.active[i+1:]...)
			return
		}
	}
}
