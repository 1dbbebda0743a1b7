package bundle_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue/bundle"
	"floodproof/reference/queue/inbox"
)

func numbered(n, size int) [][]byte {
	var all [][]byte
	for i := range n {
		all = append(all, bytes.Repeat([]byte{byte(i)}, size))
	}
	return all
}

func TestPack(t *testing.T) {
	for _, tt := range []struct {
		name     string
		messages [][]byte
		limit    int
		want     int // bundles
	}{
		{"nothing", nil, 100, 0},
		{"all in one", numbered(10, 10), 1000, 1},
		{"as many as fit", numbered(10, 100), 500, 3}, // 110 each at most, and the head
		{"an empty message", [][]byte{{}}, 100, 1},
		{"each too large", numbered(3, 200), 100, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			packed := bundle.Pack(tt.messages, tt.limit)
			if len(packed) != tt.want {
				t.Errorf("got %d bundles, want %d", len(packed), tt.want)
			}
			var got [][]byte
			for _, b := range packed {
				messages, err := bundle.Unpack(b)
				if err != nil {
					t.Fatal(err)
				}
				if len(b) > tt.limit && len(messages) > 1 {
					t.Errorf("a bundle of %d messages has %d bytes, the limit is %d", len(messages), len(b), tt.limit)
				}
				if over := len(b) - len(messages[0]); len(messages) == 1 && over > bundle.Overhead {
					t.Errorf("a bundle of one message adds %d bytes, want at most %d", over, bundle.Overhead)
				}
				got = append(got, messages...)
			}
			if diff := cmp.Diff(tt.messages, got); diff != "" {
				t.Errorf("after packing and unpacking (-want +got):\n%s", diff)
			}
		})
	}
}

// TestShelf: messages are taken once each, and a bundle is finished with its last one.
func TestShelf(t *testing.T) {
	var s bundle.Shelf[string]
	s.Put(bundle.Pack([][]byte{[]byte("a"), []byte("b"), []byte("c")}, 1000)[0], "first")
	s.Put([]byte("somebody else's"), "foreign")
	var taken []inbox.Message
	for _, want := range []int{2, 2, 0} {
		some := s.Take(2)
		if len(some) != want {
			t.Fatalf("Take(2): got %d messages, want %d", len(some), want)
		}
		taken = append(taken, some...)
	}
	var bodies []string
	for _, m := range taken {
		bodies = append(bodies, string(m.Body))
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "somebody else's"}, bodies); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for _, step := range []struct {
		done []int
		want []string
	}{
		{[]int{0}, nil},
		{[]int{0, 0, 3}, []string{"foreign"}},
		{[]int{2, 1}, []string{"first"}},
		{[]int{0, 1, 2, 3}, nil},
	} {
		var some []inbox.Message
		for _, i := range step.done {
			some = append(some, taken[i])
		}
		if diff := cmp.Diff(step.want, s.Done(some)); diff != "" {
			t.Errorf("Done(%v) (-want +got):\n%s", step.done, diff)
		}
	}
	if got := s.Done([]inbox.Message{{Handle: "of another transport"}}); got != nil {
		t.Errorf("Done of a stranger: got %q", got)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte(nil))
	f.Add([]byte("fpb\x01"))
	f.Add([]byte("fpb\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"))
	f.Add(bundle.Pack(numbered(3, 5), 1000)[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		messages, err := bundle.Unpack(b)
		if err != nil {
			return
		}
		again, err := bundle.Unpack(bundle.Pack(messages, len(b)+100*len(messages)+100)[0])
		if err != nil || fmt.Sprint(again) != fmt.Sprint(messages) {
			t.Errorf("unpacked %q, and after packing again %q, %v", messages, again, err)
		}
	})
}
