package nats

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
)

// FuzzJobRoundTrip stores any bytes in every text and in the payload, and wants them back.
func FuzzJobRoundTrip(f *testing.F) {
	f.Add("stripe", "evt_1", "", int64(7), []byte(`{"id":"evt_1"}`))
	f.Add("a\x00b", "\xff\xfe", "orders", int64(-1), []byte{})
	f.Add("", "", "Ünter/den:Linden", int64(1)<<62, bytes.Repeat([]byte("compressible "), 1000))
	f.Fuzz(func(t *testing.T, provider, id, lane string, version int64, payload []byte) {
		want := queue.Job{Provider: provider, EventID: id, DeliveryID: lane, Type: provider, Resource: id, Version: version, Lane: lane, Payload: payload,
			ReceivedAt: time.UnixMicro(version).UTC(), DeadOnArrival: provider}
		got, err := decodeJob(encodeJob(&want))
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("job (-want +got):\n%s", diff)
		}
	})
}

// FuzzDecode: nothing that stands in a stream may make a reader panic, and what it can read it writes the same way.
func FuzzDecode(f *testing.F) {
	f.Add(encodeJob(&queue.Job{Provider: "stripe", EventID: "evt", Payload: []byte("x")}))
	f.Add((&state{kind: leased, attempt: 3, at: 1, token: 9, carrier: 4, reason: "r"}).encode())
	f.Add([]byte{1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decodeJob(b)
		s, err := decodeState(b, 5)
		if err != nil {
			return
		}
		again, err := decodeState(s.encode(), 5)
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("state %+v became %+v, error %v", s, again, err)
		}
	})
}

func TestDecodeDamaged(t *testing.T) {
	whole := encodeJob(&queue.Job{Provider: "stripe", EventID: "evt", Payload: bytes.Repeat([]byte("x"), 100)})
	newer := append([]byte{99}, whole[1:]...)
	for name, test := range map[string]struct {
		bytes   []byte
		damaged bool
	}{
		"empty": {nil, true}, "half": {whole[:10], true}, "without the end": {whole[:len(whole)-1], true}, "newer": {newer, false},
	} {
		if _, err := decodeJob(test.bytes); err == nil || errors.Is(err, errDamaged) != test.damaged {
			t.Errorf("%s: got error %v, want one that says damaged: %v", name, err, test.damaged)
		}
	}
	if _, err := decodeState([]byte{1, 2}, 1); !errors.Is(err, errDamaged) {
		t.Errorf("half a state: got error %v, want %v", err, errDamaged)
	}
}

func TestSubjects(t *testing.T) {
	s := newSubjects("ns")
	hash := hashOf("stripe", "evt")
	if hashOf("strip", "eevt") == hash || hashOf("stripe", "evt") != hash {
		t.Errorf("the hash does not tell events apart")
	}
	seen := map[string]string{}
	for _, lane := range []string{"", "-", "orders", "orders ", "a.b", "*", ">", "Ünter/den:Linden", strings.Repeat("long", 100), strings.Repeat("long", 101)} {
		token := laneToken(lane)
		if seen[token] != "" || token == noLane || strings.ContainsAny(token, ".*> /\\") || len(token) > 100 {
			t.Errorf("token of lane %q: %q", lane, token)
		}
		seen[token] = lane + "!"
		for subject, wantAgain := range map[string]bool{s.job(hash, token): false, s.ready(hash, token): true} {
			if class, gotHash, again := s.split(subject); class != "q" || gotHash != hash || again != wantAgain {
				t.Errorf("%s: got class %s, hash %s, again %v", subject, class, gotHash, again)
			}
		}
	}
	for subject, want := range map[string]string{s.state(hash): "s", s.dead(hash): "d"} {
		if class, gotHash, _ := s.split(subject); class != want || gotHash != hash {
			t.Errorf("%s: got class %s, hash %s", subject, class, gotHash)
		}
	}
}

func TestTally(t *testing.T) {
	const now = int64(1_000_000_000)
	one, two := make(tally), make(tally)
	one.change("a", func(l *laneTally) { l.Stored = 10; l.lease(now+5, 3); l.lease(now-5, 2); l.lease(now-2*stale, 7) })
	one.change("b", func(l *laneTally) { l.Stored, l.Dead = 1, 1 })
	two.change("a", func(l *laneTally) { l.Done = 2; l.lease(now+5, -1) }) // settled one of the first writer's
	kept := one.clone(now)
	if n := len(kept["a"].Leases); n != 2 {
		t.Errorf("leases after clone: got %v, want those without the one that ended long ago", kept["a"].Leases)
	}
	kept.change("a", func(l *laneTally) { l.lease(now+5, 100) })
	sum := make(tally)
	for _, part := range []tally{one, two} {
		if err := sum.add(part.encode()); err != nil {
			t.Fatal(err)
		}
	}
	want := queue.Depth{
		Waiting: 6, Leased: 2, Done: 2, Dead: 1,
		Lanes: []queue.LaneDepth{{Lane: "a", Waiting: 6, Leased: 2, Done: 2}, {Lane: "b", Dead: 1}},
	}
	if diff := cmp.Diff(want, sum.depth(now)); diff != "" {
		t.Errorf("depth (-want +got):\n%s", diff)
	}
	if err := sum.add([]byte("{")); err == nil {
		t.Errorf("half a tally: got no error")
	}
}

// TestLateWrite: a settle or a prolongation that waits for its batch until the lease is over changes nothing.
func TestLateWrite(t *testing.T) {
	q := &Queue{subjects: newSubjects("ns")}
	for _, outcome := range []queue.Outcome{queue.Done(), queue.Retry(0, "r"), queue.Retry(time.Second, "r"), queue.Dead("d")} {
		e := q.settleEntry(&ending{ref: ref{hash: "h"}, ready: "r", outcome: outcome}, state{at: 10})
		if len(e.build(10)) == 0 || len(e.build(11)) != 0 {
			t.Errorf("%+v: want messages until the deadline and none after", outcome)
		}
	}
}

func TestUnique(t *testing.T) {
	got := unique([]delivery{{hash: "a", seq: 1}, {hash: "b", seq: 2}, {hash: "a", seq: 3}})
	if len(got) != 2 || got[0].hash != "b" || got[1].seq != 3 {
		t.Errorf("unique: got %+v, want b and the later a", got)
	}
}

func TestClip(t *testing.T) {
	if got := clip("short"); got != "short" {
		t.Errorf("clip: got %q", got)
	}
	if got, want := clip(strings.Repeat("ü", 5000)), strings.Repeat("ü", maxReason/2)+"..."; got != want {
		t.Errorf("clip of a long reason has %d bytes, want %d", len(got), len(want))
	}
}
