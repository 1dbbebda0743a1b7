package harness

import (
	"fmt"
	"testing"
)

func TestIndex(t *testing.T) {
	x := newIndex(10) // grows several times
	const n = 20_000
	for i := range uint32(n) {
		if err := x.add(fmt.Sprintf("evt_%d", i), i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(n) {
		if got, ok := x.find(fmt.Sprintf("evt_%d", i)); !ok || got != i {
			t.Fatalf("find(evt_%d) = %d, %v, want %d, true", i, got, ok, i)
		}
	}
	if got, ok := x.find("evt_unknown"); ok {
		t.Errorf("find(evt_unknown) = %d, true, want false", got)
	}
	if err := x.add("evt_7", 7); err != nil {
		t.Errorf("adding the same again: %v, want nil", err)
	}
	if err := x.add("evt_7", 8); err == nil {
		t.Error("adding another number under the same id: nil, want an error")
	}
}
