package kafka

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/state"
)

func (f *frame) append(b []byte) []byte {
	b = f.appendHead(b)
	for i := range f.commands {
		b = state.AppendCommand(b, &f.commands[i])
	}
	return b
}

// store makes a frame that enqueues one event.
func store(writer uint64, number int64, id string) *frame {
	return &frame{version: frameVersion, writer: writer, number: number, clock: number, commands: []state.Command{{Op: state.Enqueue, Jobs: []queue.Job{{EventID: id}}}}}
}

func FuzzReadFrame(f *testing.F) {
	f.Add(store(7, 3, "evt").append(nil))
	f.Add((&frame{version: frameVersion, writer: 1}).append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		one, err := readFrame(b)
		if err != nil {
			return
		}
		two, err := readFrame(one.append(nil))
		if diff := cmp.Diff(one, two, cmp.AllowUnexported(frame{})); err != nil || diff != "" {
			t.Fatalf("read again: error %v (-first +second):\n%s", err, diff)
		}
	})
}

func TestReadFrameRefuses(t *testing.T) {
	whole := store(7, 3, "evt").append(nil)
	for n := range whole {
		if f, err := readFrame(whole[:n]); err == nil && len(f.commands) > 0 {
			t.Errorf("the first %d of %d bytes: got no error", n, len(whole))
		}
	}
	whole[0] = laterVersion + 1
	if _, err := readFrame(whole); err == nil {
		t.Error("a frame of another version: got no error")
	}
}

// TestPlace: a place says where a command stands, and is never none.
func TestPlace(t *testing.T) {
	for _, offset := range []int64{0, 1, 1 << 46} {
		for _, command := range []int{0, 1, maxFrame / 64} {
			place := placeOf(offset, command)
			if o, c := fromPlace(place); place < 1 || o != offset || c != command {
				t.Errorf("place %d of command %d at offset %d: got %d and %d", place, command, offset, c, o)
			}
		}
	}
}

// TestFoldTwice: a frame that was sent twice counts once, and one that comes after a later one of its writer was given up and does not count at all. What another
// writer does is its own.
func TestFoldTwice(t *testing.T) {
	f := newFold()
	for _, fr := range []*frame{store(1, 1, "a"), store(1, 1, "a again"), store(1, 3, "c"), store(1, 2, "b late"), store(2, 1, "d")} {
		f.apply(fr, false)
	}
	if d := f.store.Apply(9, &state.Command{Op: state.Depth}).Depth; d.Waiting != 3 {
		t.Errorf("got %d jobs, want a, c and d", d.Waiting)
	}
}

// TestFoldsAgree: a question of one handle, or a clock that goes backwards, makes no difference between those who read the same log.
func TestFoldsAgree(t *testing.T) {
	one, two := newFold(), newFold()
	log := []*frame{
		store(1, 1, "a"),
		{writer: 2, number: 1, clock: 100, commands: []state.Command{{Op: state.Depth}}},
		{writer: 1, number: 2, clock: 50, commands: []state.Command{{Op: state.Lease, Max: 1, For: 10 * time.Microsecond}}},
	}
	for _, fr := range log {
		one.apply(fr, fr.writer == 1)
		two.apply(fr, fr.writer == 2)
	}
	a, _ := one.store.Next("")
	b, _ := two.store.Next("")
	if a != 110 || b != 110 {
		t.Errorf("the lease ends at %d for one and %d for the other, want 110", a, b)
	}
}

// TestDurability: weaker settings claim less.
func TestDurability(t *testing.T) {
	for name, test := range map[string]struct {
		replicas int
		settings map[string]string
		want     queue.Durability
	}{
		"defaults":           {1, nil, queue.DurabilityProcess},
		"flushed":            {1, map[string]string{"flush.messages": "1"}, queue.DurabilityPower},
		"three, one of them": {3, map[string]string{"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}, queue.DurabilityProcess},
		"three, two of them": {3, map[string]string{"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}, queue.DurabilityFailover},
		"unclean":            {3, map[string]string{"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}, queue.DurabilityProcess},
		"silent":             {3, map[string]string{"min.insync.replicas": "2"}, queue.DurabilityProcess},
	} {
		if got := durability(test.replicas, test.settings); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
