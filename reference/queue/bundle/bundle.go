// Package bundle puts several messages of an inbox into one of a broker, for brokers that cost much for each: a task with its script, a request with its signature. It keeps
// no promise of its own: a bundle is published whole, comes again whole, and is acknowledged when all that was in it is.
package bundle

import (
	"encoding/binary"
	"errors"
	"sync"

	"floodproof/reference/queue/inbox"
)

// head begins each bundle, so that what somebody else publishes is not taken for one.
const head = "fpb\x01"

// Overhead is how many bytes a bundle needs beside a single message in it, at most.
const Overhead = len(head) + binary.MaxVarintLen64

// Pack puts messages, in their order, into as few bundles of at most limit bytes. A message that is too large by itself, by less than Overhead of the limit, gets a bundle of its own all the
// same: the broker says what it thinks of it.
func Pack(messages [][]byte, limit int) [][]byte {
	var bundles [][]byte
	for len(messages) > 0 {
		n, size := 0, len(head)
		for n < len(messages) {
			more := len(messages[n]) + binary.MaxVarintLen64
			if n > 0 && size+more > limit {
				break
			}
			size += more
			n++
		}
		b := append(make([]byte, 0, size), head...)
		for _, m := range messages[:n] {
			b = binary.AppendUvarint(b, uint64(len(m)))
			b = append(b, m...)
		}
		bundles, messages = append(bundles, b), messages[n:]
	}
	return bundles
}

var errBundle = errors.New("it is no bundle of this program")

// Unpack takes a bundle apart. The messages are parts of b.
func Unpack(b []byte) ([][]byte, error) {
	if len(b) < len(head) || string(b[:len(head)]) != head {
		return nil, errBundle
	}
	var messages [][]byte
	for b = b[len(head):]; len(b) > 0; {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errBundle
		}
		messages = append(messages, b[n:n+int(size):n+int(size)])
		b = b[n+int(size):]
	}
	if len(messages) == 0 {
		return nil, errBundle
	}
	return messages, nil
}

// Shelf holds bundles that were fetched: what does not fit into one Fetch, and which of them are acknowledged whole. H is the broker's handle for one. The zero value is an
// empty shelf; all methods may be called concurrently.
type Shelf[H any] struct {
	mu   sync.Mutex
	rest []inbox.Message
}

// box is a bundle that was fetched.
type box[H any] struct {
	handle H
	left   int
}

// member is the handle of a message.
type member[H any] struct {
	box  *box[H]
	done bool
}

// Put adds what the broker brought. What is no bundle becomes one message, as it is: the inbox says what is wrong with it.
func (s *Shelf[H]) Put(body []byte, handle H) {
	messages, err := Unpack(body)
	if err != nil {
		messages = [][]byte{body}
	}
	b := &box[H]{handle: handle, left: len(messages)}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range messages {
		s.rest = append(s.rest, inbox.Message{Body: m, Handle: &member[H]{box: b}})
	}
}

// Take returns up to limit messages that were put and not taken yet.
func (s *Shelf[H]) Take(limit int) []inbox.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(limit, len(s.rest))
	taken := s.rest[:n:n]
	s.rest = s.rest[n:]
	return taken
}

// Done notes that messages are finished with, and returns the handles of the bundles that are finished by that. A message that is finished twice counts once.
func (s *Shelf[H]) Done(messages []inbox.Message) []H {
	s.mu.Lock()
	defer s.mu.Unlock()
	var handles []H
	for _, m := range messages {
		one, ok := m.Handle.(*member[H])
		if !ok || one.done {
			continue
		}
		one.done = true
		if one.box.left--; one.box.left == 0 {
			handles = append(handles, one.box.handle)
		}
	}
	return handles
}
