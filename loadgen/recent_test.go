package loadgen

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestWindowCountsTheLastStretch compares with a list of all that happened: nothing younger than the window is missing, nothing older than a step more is in it.
func TestWindowCountsTheLastStretch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const length = time.Hour
	for range 20 {
		var w window
		var times []time.Duration
		at := time.Duration(r.Int64N(int64(time.Hour)))
		for range 2000 {
			at += time.Duration(r.ExpFloat64() * float64(10*time.Second))
			if r.IntN(400) == 0 {
				at += time.Duration(r.Int64N(int64(5 * length)))
			}
			times = append(times, at)
			w.add(length, at, sums{attempts: 1, failures: 1, events: 2})
			low, high := 0, 0
			for _, then := range times {
				low += one(at-then < length)
				high += one(at-then <= length+length/windowSteps)
			}
			if n := w.total.attempts; n < low || n > high || w.total.failures != n || w.total.events != 2*n {
				t.Fatalf("at %v the window has %+v, want %d to %d attempts", at, w.total, low, high)
			}
		}
	}
}

// TestRowKeepsTheLast instants, whatever their number.
func TestRowKeepsTheLast(t *testing.T) {
	var r row
	for round := range 3 {
		for i := range 12 {
			at := time.Duration(100*round + i)
			if got, want := r.full(4, at), i >= 4; got != want {
				t.Fatalf("round %d: %d in a row are more than 4: %t", round, i+1, got)
			}
			if i >= 4 && r.oldest() != at-4 {
				t.Fatalf("round %d: the oldest of five is %d, want %d", round, r.oldest(), at-4)
			}
		}
		r.clear()
	}
}
