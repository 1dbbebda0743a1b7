package sink

import (
	"hash/maphash"
	"strconv"
	"testing"
)

func TestKeyTableFindsWhatWasBound(t *testing.T) {
	const keys = 50_000
	seed := maphash.MakeSeed()
	hash := func(i int) uint64 { return max(1, maphash.String(seed, strconv.Itoa(i))) }
	var table keyTable
	for i := range keys {
		if _, ok := table.find(hash(i)); ok {
			t.Fatalf("key %d is bound before it was", i)
		}
		table.bind(hash(i), place{number: uint32(i), step: uint8(i), strange: i%2 == 0})
	}
	for i := range keys {
		want := place{number: uint32(i), step: uint8(i), strange: i%2 == 0}
		if got, ok := table.find(hash(i)); !ok || got != want {
			t.Fatalf("key %d: got %+v, %t, want %+v", i, got, ok, want)
		}
	}
	slots := 0
	for _, s := range table.shards {
		slots += len(s.slots)
		if 4*s.used > 3*len(s.slots) {
			t.Errorf("a shard holds %d keys in %d slots, want at most 3/4", s.used, len(s.slots))
		}
	}
	if slots > 3*keys {
		t.Errorf("%d slots for %d keys, want at most 3 for each", slots, keys)
	}
}

// TestKeyTableKeepsNeighboursApart binds hashes that all want the same slot.
func TestKeyTableKeepsNeighboursApart(t *testing.T) {
	var table keyTable
	for i := range uint64(100) {
		table.bind(7|i<<32, place{number: uint32(i)})
	}
	for i := range uint64(100) {
		if got, ok := table.find(7 | i<<32); !ok || got.number != uint32(i) {
			t.Errorf("neighbour %d: got %+v, %t", i, got, ok)
		}
	}
	if got, ok := table.find(7 | 100<<32); ok {
		t.Errorf("a key that was never bound: got %+v", got)
	}
}

func TestEffectsOverPages(t *testing.T) {
	e := effects{steps: 3}
	cells := []place{{number: 0}, {number: 0, step: 2}, {number: 1}, {number: pageEvents - 1, step: 2}, {number: pageEvents}, {number: 20 * pageEvents, step: 1}}
	for i, p := range cells {
		if e.isTaken(p) {
			t.Errorf("%+v is taken before it was", p)
		}
		e.take(p)
		if _, ok := e.version(p); ok {
			t.Errorf("%+v has a version before an upsert", p)
		}
		e.raise(p, int64(i-3))
		e.raise(p, int64(i-4))
	}
	for i, p := range cells {
		if v, ok := e.version(p); !e.isTaken(p) || !ok || v != int64(i-3) {
			t.Errorf("%+v: got taken %t, version %d, %t, want version %d", p, e.isTaken(p), v, ok, i-3)
		}
	}
	for _, p := range []place{{number: 0, step: 1}, {number: 2}, {number: 10 * pageEvents}, {number: 1 << 31}} {
		if e.isTaken(p) {
			t.Errorf("%+v was never taken", p)
		}
	}
	pages := 0
	for _, pg := range e.pages {
		if pg != nil {
			pages++
		}
	}
	if pages != 3 {
		t.Errorf("%d pages for 3 that were touched", pages)
	}
}
