package loadgen

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeapSorts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := heap[int]{before: func(a, b int) bool { return a < b }}
		var want, got []int
		for range rng.IntN(60) {
			x := rng.IntN(20)
			h.push(x)
			want = append(want, x)
		}
		slices.Sort(want)
		for h.len() > 0 {
			if top := h.top(); len(got) > 0 && top < got[len(got)-1] {
				t.Fatalf("top %d after %d", top, got[len(got)-1])
			}
			got = append(got, h.pop())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("popped (-want +got):\n%s", diff)
		}
	}
}

func TestFifoKeepsOrderAndMemory(t *testing.T) {
	var q fifo[int]
	next := 0
	for i := range 100_000 {
		q.push(i)
		if i%100 == 0 { // a hundred stay in, so that it never gets empty
			continue
		}
		if got := q.pop(); got != next {
			t.Fatalf("pop = %d, want %d", got, next)
		}
		next++
	}
	if want := 1000; q.len() != want {
		t.Errorf("len = %d, want %d", q.len(), want)
	}
	if cap(q.items) > 8*q.len() {
		t.Errorf("holds memory for %d items, has %d", cap(q.items), q.len())
	}
}
