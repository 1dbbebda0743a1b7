package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"floodproof/reference/queue"
)

func newTestSegments(t *testing.T) *segments {
	t.Helper()
	dir := t.TempDir()
	s := openSegments(dir)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func store(t *testing.T, s *segments, body []byte) place {
	t.Helper()
	at, err := s.next()
	if err != nil {
		t.Fatal(err)
	}
	s.stage(body)
	return at
}

// TestSegments fills more segments than descriptors are kept for, discards some of what it stages, and reads everything back, from many goroutines.
func TestSegments(t *testing.T) {
	s := newTestSegments(t)
	stored := map[place][]byte{}
	for i := range 3 * maxOpenSegments {
		for j := range 3 {
			body := bytes.Repeat([]byte{byte(i), byte(j)}, i*j)
			stored[store(t, s, body)] = body
		}
		if err := s.flush(i%2 == 0); err != nil {
			t.Fatal(err)
		}
		store(t, s, []byte("of a transaction that was rolled back"))
		s.discard()
		if err := s.file.Truncate(segmentLimit); err != nil { // as if it were full
			t.Fatal(err)
		}
		s.end = segmentLimit
	}
	if len(stored) != 9*maxOpenSegments {
		t.Fatalf("%d places for %d bodies", len(stored), 9*maxOpenSegments)
	}
	if last, err := s.last(); err != nil || last != 3*maxOpenSegments {
		t.Errorf("the last segment is %d (%v), want %d", last, err, 3*maxOpenSegments)
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for at, want := range stored { // in another order each time
				if got, err := s.read(at, len(want)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("at %v: got %q (%v), want %q", at, got, err, want)
				}
			}
		})
	}
	readers.Wait()
	if len(s.open) > maxOpenSegments {
		t.Errorf("%d descriptors are open, the bound is %d", len(s.open), maxOpenSegments)
	}
}

// TestSegmentDamage changes what is stored in every way: no wrong byte may come back.
func TestSegmentDamage(t *testing.T) {
	body := []byte("what was stored")
	for name, tt := range map[string]struct {
		damage func(f *os.File, at place) error
		at     place
		size   int
	}{
		"flipped bit":  {damage: func(f *os.File, at place) error { _, err := f.WriteAt([]byte{'W'}, at.offset+recordHeader); return err }, size: len(body)},
		"zeros":        {damage: func(f *os.File, at place) error { _, err := f.WriteAt(make([]byte, 64), at.offset); return err }, size: len(body)},
		"cut":          {damage: func(f *os.File, at place) error { return f.Truncate(at.offset + recordHeader + 3) }, size: len(body)},
		"empty":        {damage: func(f *os.File, _ place) error { return f.Truncate(0) }, size: len(body)},
		"wrong size":   {damage: func(*os.File, place) error { return nil }, size: len(body) - 1},
		"wrong offset": {damage: func(*os.File, place) error { return nil }, at: place{offset: 1}, size: len(body) - 1},
		"no segment":   {damage: func(*os.File, place) error { return nil }, at: place{segment: 7}, size: len(body)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestSegments(t)
			at := store(t, s, body)
			if err := s.flush(true); err != nil {
				t.Fatal(err)
			}
			if err := tt.damage(s.file, at); err != nil {
				t.Fatal(err)
			}
			at.segment += tt.at.segment
			at.offset += tt.at.offset
			if got, err := s.read(at, tt.size); !errors.Is(err, errDamaged) {
				t.Errorf("got %q, %v, want %v", got, err, errDamaged)
			}
		})
	}
}

// TestDamagedPayloadIsDead: a job whose payload is gone becomes a dead letter, and the jobs behind it are worked on.
func TestDamagedPayloadIsDead(t *testing.T) {
	q, err := Open(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for i := range 3 {
		j := queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", i), Type: "invoice.paid", Payload: fmt.Appendf(nil, "payload %d", i)}
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(q.payloads.path(1), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("P"), recordHeader); err != nil { // of the first
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(got) < 2 {
		leases, err := q.Receive(t.Context(), "", 1)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, leases[0].EventID)
		if err := q.Settle(t.Context(), leases[0], queue.Done()); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(got) != "[evt_1 evt_2]" {
		t.Errorf("received %v, want those whose payloads are whole", got)
	}
	var dead []queue.DeadLetter
	err = q.DeadLetters(t.Context(), func(d queue.DeadLetter) error { dead = append(dead, d); return nil })
	if err != nil || len(dead) != 1 || dead[0].EventID != "evt_0" || dead[0].Payload != nil {
		t.Errorf("dead letters %+v (%v), want evt_0 without a payload", dead, err)
	}
	if _, err := q.Event(t.Context(), "stripe", "evt_0"); !errors.Is(err, errDamaged) {
		t.Errorf("looking the event up: %v, want %v", err, errDamaged)
	}
}
