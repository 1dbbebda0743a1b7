package chaos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
)

// LimitsMemory makes the fake fleet one whose memory can be limited.
func (fleet) LimitsMemory() error { return nil }

// RunOutOfMemory makes a fake process one that dies of it, unless it cannot be killed.
func (p *process) RunOutOfMemory(ctx context.Context, room int64) (string, error) {
	if err := errors.Join(ctx.Err(), p.noGlut); err != nil {
		return "", err
	}
	p.set(true)
	p.diary.add("limit %s to %d more", p.name, room)
	return "cgroup v2", nil
}

// limitless is a fleet on a machine without such limits.
type limitless struct{ fleet }

var errNoLimits = errors.New("no limits here")

func (limitless) LimitsMemory() error { return errNoLimits }

func TestOutOfMemory(t *testing.T) {
	for _, role := range []string{"worker", "receiver"} {
		d := &diary{}
		f := newFleet(d, role, 2)
		params := chaos.Params{"which": {Text: "all"}, "room": {Number: 2}}
		target, heal, err := newFault(t, role+".out-of-memory", params, chaos.Deps{Fleet: f}).Inject(t.Context(), 0)
		if want := role + "-1, " + role + "-2, cgroup v2"; err != nil || target != want {
			t.Fatalf("got target %q, error %v; want %q", target, err, want)
		}
		if diff := cmp.Diff([]string{role + "-1", role + "-2"}, f.dead(role)); diff != "" {
			t.Errorf("dead (-want +got):\n%s", diff)
		}
		if err := heal(t.Context()); err != nil || len(f.dead(role)) > 0 {
			t.Errorf("heal: error %v, still dead: %v", err, f.dead(role))
		}
		if lines := d.read(); len(lines) != 4 {
			t.Errorf("what happened: %q", lines)
		}
	}
}

// TestOutOfMemoryUndoesItself: one that did not die of it may be leaking still, and is not left like that.
func TestOutOfMemoryUndoesItself(t *testing.T) {
	d := &diary{}
	f := newFleet(d, "worker", 2)
	f["worker"][1].noGlut = errBroken
	fault := newFault(t, "worker.out-of-memory", chaos.Params{"which": {Text: "all"}}, chaos.Deps{Fleet: f})
	if _, heal, err := fault.Inject(t.Context(), 0); !errors.Is(err, errBroken) || heal != nil {
		t.Errorf("got error %v, heal %t", err, heal != nil)
	}
	if dead := f.dead("worker"); len(dead) > 0 {
		t.Errorf("left dead: %v", dead)
	}
	killed := 0
	for _, line := range d.read() {
		if line == "kill worker-2" {
			killed++
		}
	}
	if killed != 1 {
		t.Errorf("the one that leaks was killed %d times: %q", killed, d.read())
	}
}

func TestOutOfMemoryWhereItCannotBe(t *testing.T) {
	for name, f := range map[string]chaos.Fleet{
		"no limits on this machine": limitless{newFleet(&diary{}, "worker", 1)},
		"a fleet that knows none":   bareFleet{},
	} {
		_, err := kind(t, "worker.out-of-memory").New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)})
		if !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	strangers := struct {
		bareFleet
		chaos.MemoryLimits
	}{bareFleet{procs: []chaos.Process{bare{&process{name: "stranger"}}}}, fleet{}}
	if _, _, err := newFault(t, "worker.out-of-memory", nil, chaos.Deps{Fleet: strangers}).Inject(t.Context(), 0); err == nil {
		t.Error("a process that cannot be told to leak: no error")
	}
}
