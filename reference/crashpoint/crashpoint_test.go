package crashpoint_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"floodproof/reference/crashpoint"
)

func TestFuseBurnsAtTheNthPassing(t *testing.T) {
	var burnt []crashpoint.Point
	f := crashpoint.NewFuse(func(p crashpoint.Point) { burnt = append(burnt, p) })
	f.At(crashpoint.AfterClaim) // not armed
	f.Arm(crashpoint.AfterClaim, 3)
	for _, p := range []crashpoint.Point{crashpoint.AfterClaim, crashpoint.BeforeSettle, crashpoint.AfterClaim} {
		f.At(p)
	}
	if len(burnt) > 0 {
		t.Fatalf("burnt after two passings: %v", burnt)
	}
	f.At(crashpoint.AfterClaim)
	f.At(crashpoint.AfterClaim)
	if !slices.Equal(burnt, []crashpoint.Point{crashpoint.AfterClaim}) {
		t.Errorf("burnt %v, want once", burnt)
	}
}

func TestDisarmedAndReplacedFuses(t *testing.T) {
	burnt := 0
	f := crashpoint.NewFuse(func(crashpoint.Point) { burnt++ })
	f.Arm(crashpoint.AfterEnqueue, 1)
	f.Disarm()
	f.At(crashpoint.AfterEnqueue)
	f.Arm(crashpoint.AfterEnqueue, 1)
	f.Arm(crashpoint.AfterAnswer, 1)
	f.At(crashpoint.AfterEnqueue)
	if burnt > 0 {
		t.Errorf("burnt %d times, want none", burnt)
	}
	f.At(crashpoint.AfterAnswer)
	if burnt != 1 {
		t.Errorf("burnt %d times, want once", burnt)
	}
}

// TestFuseBurnsOnce: many goroutines pass a point, and one of them burns.
func TestFuseBurnsOnce(t *testing.T) {
	var burnt atomic.Int64
	f := crashpoint.NewFuse(func(crashpoint.Point) { burnt.Add(1) })
	f.Arm(crashpoint.AfterSettle, 50)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				f.At(crashpoint.AfterSettle)
			}
		})
	}
	wg.Wait()
	if n := burnt.Load(); n != 1 {
		t.Errorf("burnt %d times, want once", n)
	}
}

func TestHook(t *testing.T) {
	crashpoint.Hook(nil).At(crashpoint.AfterClaim) // and nothing happens
	var told crashpoint.Point
	crashpoint.Hook(func(p crashpoint.Point) { told = p }).At(crashpoint.AfterClaim)
	if told != crashpoint.AfterClaim {
		t.Errorf("told %q", told)
	}
}

func TestParse(t *testing.T) {
	for _, p := range slices.Concat(crashpoint.Worker(), crashpoint.Receiver()) {
		if got, err := crashpoint.Parse(string(p)); got != p || err != nil {
			t.Errorf("Parse(%q) = %q, %v", p, got, err)
		}
	}
	if _, err := crashpoint.Parse("after-lunch"); err == nil {
		t.Error("a point that there is not was found")
	}
}

// BenchmarkHook is what a point costs: in use, where there is no hook, and in a process that could be told to crash and was not.
func BenchmarkHook(b *testing.B) {
	fuse := crashpoint.NewFuse(func(crashpoint.Point) {})
	armed := crashpoint.NewFuse(func(crashpoint.Point) {})
	armed.Arm(crashpoint.AfterSettle, 1)
	for name, hook := range map[string]crashpoint.Hook{"none": nil, "not armed": fuse.At, "armed elsewhere": armed.At} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hook.At(crashpoint.BeforeSettle)
			}
		})
	}
}
