package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"floodproof/chaos"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pass lets time pass in a synctest bubble, whose clock is not a real one, and then everything else that is due.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var errBroken = errors.New("broken on purpose")

// diary is the order in which things happened to the fakes.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(format string, v ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, v...))
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// process is a fake process that tells what happened to it.
type process struct {
	name  string
	diary *diary

	mu       sync.Mutex
	dead     bool
	paused   bool
	noKill   error
	noPause  error
	noStart  error
	onKill   func()
	onStart  func() error
	badStart bool
	obedient
}

func (p *process) Name() string { return p.name }

func (p *process) Kill(ctx context.Context) error {
	if p.onKill != nil {
		p.onKill()
	}
	if err := errors.Join(ctx.Err(), p.noKill); err != nil {
		return err
	}
	p.set(true)
	p.diary.add("kill %s", p.name)
	return nil
}

func (p *process) Start(ctx context.Context) error {
	if p.badStart {
		panic("start of " + p.name)
	}
	if err := errors.Join(ctx.Err(), p.noStart); err != nil {
		return err
	}
	if p.onStart != nil {
		if err := p.onStart(); err != nil {
			return err
		}
	}
	if p.set(false) {
		p.diary.add("start %s", p.name)
	}
	return nil
}

func (p *process) Pause(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(ctx.Err(), p.noPause); err != nil {
		return err
	}
	p.paused = true
	return nil
}

func (p *process) Resume(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = false
	return nil
}

// set reports whether that changed anything.
func (p *process) set(dead bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	changed := p.dead != dead
	p.dead = dead
	return changed
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// fleet is fake processes by role.
type fleet map[string][]*process

func (f fleet) Processes(role string) []chaos.Process {
	var list []chaos.Process
	for _, p := range f[role] {
		list = append(list, p)
	}
	return list
}

func (f fleet) paused(role string) []string {
	var list []string
	for _, p := range f[role] {
		p.mu.Lock()
		if p.paused {
			list = append(list, p.name)
		}
		p.mu.Unlock()
	}
	return list
}

func (f fleet) dead(role string) []string {
	var list []string
	for _, p := range f[role] {
		if p.isDead() {
			list = append(list, p.name)
		}
	}
	return list
}

func newFleet(d *diary, role string, n int) fleet {
	f := fleet{}
	for i := range n {
		f[role] = append(f[role], &process{name: fmt.Sprintf("%s-%d", role, i+1), diary: d})
	}
	return f
}

// downstream keeps what was placed on it.
type downstream struct {
	mu     sync.Mutex
	placed []*chaos.Misbehaviour
	all    []chaos.Misbehaviour
}

func (d *downstream) Misbehave(m chaos.Misbehaviour) func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := &m
	d.placed = append(d.placed, p)
	m2 := m
	m2.Trigger = nil
	d.all = append(d.all, m2)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.placed = slices.DeleteFunc(d.placed, func(q *chaos.Misbehaviour) bool { return q == p })
	}
}

// call plays a call that meets what is in place; it reports whether something was.
func (d *downstream) call() bool {
	d.mu.Lock()
	if len(d.placed) == 0 {
		d.mu.Unlock()
		return false
	}
	m := d.placed[0]
	if m.Times == 1 {
		d.placed = d.placed[1:]
	}
	d.mu.Unlock()
	if m.Trigger != nil {
		m.Trigger()
	}
	return true
}

func (d *downstream) inPlace() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.placed)
}

// holder is a fake queue.
type holder struct {
	diary     *diary
	noHold    error
	noRelease error
}

func (h *holder) Hold(context.Context) (func(context.Context) error, error) {
	if h.noHold != nil {
		return nil, h.noHold
	}
	h.diary.add("hold")
	return func(ctx context.Context) error {
		if err := errors.Join(ctx.Err(), h.noRelease); err != nil {
			return err
		}
		h.diary.add("release")
		return nil
	}, nil
}

// flooder is somebody who only says that he floods.
type flooder struct {
	running int
	floods  []chaos.Flood
	refuses error
}

func (f *flooder) Flood(_ context.Context, flood chaos.Flood) (func(context.Context) error, error) {
	if f.refuses != nil {
		return nil, f.refuses
	}
	f.running++
	f.floods = append(f.floods, flood)
	return func(context.Context) error { f.running--; return nil }, nil
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, n)) }

func kind(t *testing.T, name string) chaos.Kind {
	t.Helper()
	for _, k := range chaos.Catalog() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("the catalogue has no %s", name)
	return chaos.Kind{}
}

func newFault(t *testing.T, name string, p chaos.Params, d chaos.Deps) chaos.Fault {
	t.Helper()
	if d.Rand == nil {
		d.Rand = seeded(1)
	}
	f, err := kind(t, name).New(p, d)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
