package loadgen

import (
	"fmt"
	"math"
	"testing"
)

func TestDiceNeverRepeatKeys(t *testing.T) {
	d := dice{42}.withRun("run-1")
	seen := make(map[uint64]uint64, 1<<18)
	for n := range uint64(1 << 18) {
		key := d.bits(forEventKey, n)
		if m, twice := seen[key]; twice {
			t.Fatalf("numbers %d and %d share the key %x", m, n, key)
		}
		seen[key] = n
	}
}

// TestMixIsBijective inverts mix step by step, which only a bijection allows.
func TestMixIsBijective(t *testing.T) {
	inverse := func(y uint64) uint64 {
		y ^= y>>31 ^ y>>62
		y *= 0x319642b2d24d8ec3
		y ^= y>>27 ^ y>>54
		y *= 0x96de1b173f119089
		y ^= y>>30 ^ y>>60
		return y - 0x9e3779b97f4a7c15
	}
	for _, x := range []uint64{0, 1, 2, 1 << 31, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64} {
		if got := inverse(mix(x)); got != x {
			t.Errorf("inverse(mix(%x)) = %x", x, got)
		}
	}
}

func TestDiceAreUniformAndIndependent(t *testing.T) {
	const n = 200_000
	for _, d := range []dice{{0}, {1}, {1 << 52}} {
		var mean, both float64
		for i := range uint64(n) {
			u := d.unit(forForgery, i)
			if u < 0 || u >= 1 {
				t.Fatalf("unit(%d) = %v, want [0, 1)", i, u)
			}
			mean += u / n
			if d.hit(forForgery, i, 0.1) && d.hit(forExpiry, i, 0.1) {
				both++
			}
		}
		if math.Abs(mean-0.5) > 0.005 {
			t.Errorf("seed %d: mean %v, want 0.5", d.seed, mean)
		}
		if got := both / n; math.Abs(got-0.01) > 0.002 {
			t.Errorf("seed %d: two tenths meet in %v, want 0.01", d.seed, got)
		}
	}
}

// TestSeedsAndPurposesDoNotMeet: small seeds and small purposes must not add up to the same draws.
func TestSeedsAndPurposesDoNotMeet(t *testing.T) {
	seen := map[uint64]string{}
	for seed := range uint64(64) {
		for p := forArrival; p <= forJitter; p++ {
			for n := range uint64(64) {
				name := fmt.Sprintf("seed %d, purpose %d, number %d", seed, p, n)
				bits := dice{seed}.bits(p, n)
				if other, twice := seen[bits]; twice {
					t.Fatalf("%s draws what %s draws", name, other)
				}
				seen[bits] = name
			}
		}
	}
}

func TestRunIDChangesKeys(t *testing.T) {
	d := dice{42}
	if d.withRun("a").bits(forEventKey, 1) == d.withRun("b").bits(forEventKey, 1) {
		t.Error("two run ids share a key")
	}
	if d.withRun("a") == (dice{43}).withRun("a") {
		t.Error("two seeds share their keys")
	}
}
