package child

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
)

// op is what a record does to the state.
type op byte

const (
	opQueue  op = iota + 1 // a queue is made, or has these attributes from now on
	opGone                 // a queue is deleted, and all in it
	opPurge                // the messages of a queue up to a number are deleted
	opSend                 // a message is stored
	opDelete               // a message is deleted
	opNumber               // numbers up to this one were given away
)

// record is one line of the log. Which fields count depends on the op.
type record struct {
	op op
	// queue is the number of a queue, number that of a message: both are given once, whatever became of their owners.
	queue, number uint64
	// at is when it happened, in microseconds since 1970.
	at int64
	// name and settings are those of a queue.
	name     string
	settings map[string]string
	message  message
}

// message is what a sender said, and its id.
type message struct {
	id, body     string
	group, dedup string // of a FIFO queue
	// until is when it may be received first, in microseconds since 1970; 0 is at once.
	until      int64
	attributes []attribute
}

// attribute is one attribute of a message. The value of a binary one is raw.
type attribute struct{ name, kind, value string }

var errRecord = errors.New("not a record of this log")

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// append encodes a record.
func (r *record) append(b []byte) []byte {
	b = append(b, byte(r.op))
	b = binary.AppendUvarint(b, r.queue)
	b = binary.AppendUvarint(b, r.number)
	b = binary.AppendVarint(b, r.at)
	switch r.op {
	case opQueue:
		b = appendText(b, r.name)
		b = binary.AppendUvarint(b, uint64(len(r.settings)))
		for _, name := range slices.Sorted(maps.Keys(r.settings)) {
			b = appendText(appendText(b, name), r.settings[name])
		}
	case opSend:
		m := &r.message
		b = appendText(appendText(b, m.id), m.body)
		b = appendText(appendText(b, m.group), m.dedup)
		b = binary.AppendVarint(b, m.until)
		b = binary.AppendUvarint(b, uint64(len(m.attributes)))
		for _, a := range m.attributes {
			b = appendText(appendText(appendText(b, a.name), a.kind), a.value)
		}
	case opGone, opPurge, opDelete, opNumber: // the numbers say all
	}
	return b
}

// scanner takes a record apart. Its first failure stays.
type scanner struct {
	rest   []byte
	failed bool
}

func (s *scanner) number() uint64 {
	v, n := binary.Uvarint(s.rest)
	if n <= 0 {
		s.failed, s.rest = true, nil
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

func (s *scanner) signed() int64 {
	v, n := binary.Varint(s.rest)
	if n <= 0 {
		s.failed, s.rest = true, nil
		return 0
	}
	s.rest = s.rest[n:]
	return v
}

func (s *scanner) text() string {
	n := s.number()
	if n > uint64(len(s.rest)) {
		s.failed, s.rest = true, nil
		return ""
	}
	text := string(s.rest[:n])
	s.rest = s.rest[n:]
	return text
}

// count is a number of things of which each takes at least some bytes.
func (s *scanner) count(each int) int {
	n := s.number()
	if n > uint64(len(s.rest)/each) {
		s.failed, s.rest = true, nil
		return 0
	}
	return int(n)
}

// readRecord decodes one record, which must be all there is.
func readRecord(b []byte) (record, error) {
	if len(b) == 0 {
		return record{}, errRecord
	}
	s := scanner{rest: b[1:]}
	r := record{op: op(b[0]), queue: s.number(), number: s.number(), at: s.signed()}
	switch r.op {
	case opQueue:
		r.name, r.settings = s.text(), make(map[string]string)
		for range s.count(2) {
			name := s.text()
			r.settings[name] = s.text()
		}
	case opSend:
		r.message = message{id: s.text(), body: s.text(), group: s.text(), dedup: s.text(), until: s.signed()}
		for range s.count(3) {
			r.message.attributes = append(r.message.attributes, attribute{name: s.text(), kind: s.text(), value: s.text()})
		}
	case opGone, opPurge, opDelete, opNumber:
	default:
		return record{}, errRecord
	}
	if s.failed || len(s.rest) > 0 {
		return record{}, errRecord
	}
	return r, nil
}
