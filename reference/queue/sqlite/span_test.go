package sqlite

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

// TestClaimOfMany: the records of one claim, beside one another and apart, compressed and not, are each what was stored, however many claims share the memory that they are read into.
func TestClaimOfMany(t *testing.T) {
	dir := t.TempDir()
	one, two := openTest(t, dir), openTest(t, dir)
	want := make(map[string][]byte)
	for i := range 40 {
		job := jobOf(fmt.Sprint("evt_", i), 200)
		switch {
		case i%3 == 0: // that cannot be compressed
			job.Payload = make([]byte, 500)
			_, _ = rand.Read(job.Payload)
		case i%10 == 1: // that pushes its neighbours apart
			job.Payload = make([]byte, maxSpan)
			_, _ = rand.Read(job.Payload)
		}
		want[job.EventID] = job.Payload
		store(t, []*Queue{one, two}[i%2], job)
	}
	for _, q := range []*Queue{one, two} {
		if err := q.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[string][]byte)
	var leases []queue.Lease
	for len(leases) < len(want) {
		some, err := two.Receive(t.Context(), "slow", 7)
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, some...)
	}
	for _, l := range leases {
		got[l.EventID] = l.Payload
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
}

// TestClaimOfManyWithDamage: a record that is damaged is the end of its own job alone.
func TestClaimOfManyWithDamage(t *testing.T) {
	q := openTest(t, t.TempDir())
	for i := range 5 {
		store(t, q, jobOf(fmt.Sprint("evt_", i), 300))
	}
	if err := q.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(q.log.path(1))
	if err != nil {
		t.Fatal(err)
	}
	third := int64(0)
	for range 2 {
		third += int64(len(cut(whole[third:])))
	}
	damage(t, q.log.path(1), third+minRecord)
	leases, err := q.Receive(t.Context(), "slow", 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range leases {
		got = append(got, l.EventID)
	}
	if diff := cmp.Diff([]string{"evt_0", "evt_1", "evt_3", "evt_4"}, got); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	if _, err := q.Event(t.Context(), "stripe", "evt_2"); !errors.Is(err, errDamaged) {
		t.Errorf("looking the damaged one up: %v, want %v", err, errDamaged)
	}
}
