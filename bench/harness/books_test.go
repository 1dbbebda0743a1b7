package harness

import (
	"bytes"
	"slices"
	"testing"

	"floodproof/reports/ledger"
)

// record is anything that the books take.
type record any

func testBooks(t *testing.T, records ...record) *books {
	t.Helper()
	w, err := ledger.Create(&bytes.Buffer{}, ledger.Header{Steps: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	b := newBooks(w, 10, 1)
	for _, r := range records {
		switch r := r.(type) {
		case ledger.Event:
			b.Event(r)
		case ledger.Delivery:
			b.Delivery(r)
		case ledger.Attempt:
			b.Attempt(r)
		case ledger.Call:
			b.Call(r)
		case uint32:
			b.dead(r)
		}
	}
	return b
}

func TestTally(t *testing.T) {
	one := ledger.Event{Number: 1, ID: "one"}
	sent := ledger.Delivery{Number: 0, Class: ledger.Genuine, First: 1, Count: 1}
	again := ledger.Delivery{Number: 1, Class: ledger.DuplicateSameID, First: 1, Count: 1}
	acked := ledger.Attempt{Delivery: 0, Try: 1, Result: ledger.OK}
	took := ledger.Call{Event: 1, Outcome: ledger.Took}
	for _, c := range []struct {
		name    string
		records []record
		want    Tally
	}{
		{"introduced only", []record{one}, Tally{}},
		{"sent", []record{one, sent}, Tally{Born: 1}},
		{"acked", []record{one, sent, acked}, Tally{Born: 1, Acked: 1, Pending: 1, Attempts: 1}},
		{"acked twice", []record{one, sent, again, acked, ledger.Attempt{Delivery: 1, Try: 1, Result: ledger.OK}}, Tally{Born: 1, Acked: 1, Pending: 1, Attempts: 2}},
		{"acked and applied", []record{one, sent, acked, took}, Tally{Born: 1, Acked: 1, Applied: 1, Attempts: 1}},
		{"applied and then acked", []record{one, sent, took, acked}, Tally{Born: 1, Acked: 1, Applied: 1, Attempts: 1}},
		{"doubled", []record{one, sent, acked, took, took}, Tally{Born: 1, Acked: 1, Applied: 1, Attempts: 1}},
		{"replayed is no effect", []record{one, sent, acked, ledger.Call{Event: 1, Outcome: ledger.Replayed}}, Tally{Born: 1, Acked: 1, Pending: 1, Attempts: 1}},
		{"refused", []record{one, sent, ledger.Attempt{Delivery: 0, Try: 1, Result: ledger.Refused}}, Tally{Born: 1, Attempts: 1, Refused: 1}},
		{"poison", []record{ledger.Event{Number: 1, ID: "one", Flags: ledger.Poison}, sent, acked}, Tally{Born: 1, Acked: 1, PoisonPending: 1, Attempts: 1}},
		{"poison, dead", []record{ledger.Event{Number: 1, ID: "one", Flags: ledger.Poison}, sent, acked, uint32(1), uint32(1)}, Tally{Born: 1, Acked: 1, Dead: 1, Attempts: 1}},
		{"forged", []record{one, ledger.Delivery{Number: 0, Class: ledger.Forged, First: 1, Count: 1}, acked}, Tally{Attempts: 1}},
	} {
		got := testBooks(t, c.records...).Tally()
		got.AckP99 = 0
		if got != c.want {
			t.Errorf("%s: tally %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestTallySuperseded: of updates, what a newer version answers for is not waited for, whichever came first.
func TestTallySuperseded(t *testing.T) {
	var old, newer []record
	for i, version := range []uint32{1, 2} {
		n := uint32(i + 1)
		list := []record{
			ledger.Event{Number: n, ID: string(rune('a' + i)), Flags: ledger.Latest, Resource: 7, Version: version},
			ledger.Delivery{Number: n, Class: ledger.Genuine, First: n, Count: 1},
			ledger.Attempt{Delivery: n, Try: 1, Result: ledger.OK},
		}
		if version == 1 {
			old = list
		} else {
			newer = list
		}
	}
	oldTook, newerTook := ledger.Call{Event: 1, Outcome: ledger.Took}, ledger.Call{Event: 2, Outcome: ledger.Took}
	for _, c := range []struct {
		name    string
		records []record
		want    Tally
	}{
		{"both wait", slices.Concat(old, newer), Tally{Born: 2, Acked: 2, Pending: 2, Attempts: 2}},
		{"the older is done", slices.Concat(old, newer, []record{oldTook}), Tally{Born: 2, Acked: 2, Applied: 1, Pending: 1, Attempts: 2}},
		{"the newer is done", slices.Concat(old, newer, []record{newerTook}), Tally{Born: 2, Acked: 2, Applied: 1, Attempts: 2}},
		{"the newer was done before", slices.Concat(newer, []record{newerTook}, old), Tally{Born: 2, Acked: 2, Applied: 1, Attempts: 2}},
		{"the older is done all the same", slices.Concat(old, newer, []record{newerTook, oldTook}), Tally{Born: 2, Acked: 2, Applied: 2, Attempts: 2}},
	} {
		got := testBooks(t, c.records...).Tally()
		got.AckP99 = 0
		if got != c.want {
			t.Errorf("%s: tally %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestLookup(t *testing.T) {
	b := testBooks(t,
		ledger.Event{Number: 3, ID: "a", Flags: ledger.Poison},
		ledger.Event{Number: 9, ID: "b", Flags: ledger.Phantom})
	for _, c := range []struct {
		id     string
		number uint32
		flags  ledger.EventFlags
		ok     bool
	}{
		{"a", 3, ledger.Poison, true},
		{"b", 9, ledger.Phantom, true},
		{"c", ledger.None, 0, false},
	} {
		if n, flags, ok := b.lookup(c.id); n != c.number || flags != c.flags || ok != c.ok {
			t.Errorf("lookup(%q) = %d, %d, %v, want %d, %d, %v", c.id, n, flags, ok, c.number, c.flags, c.ok)
		}
	}
}
