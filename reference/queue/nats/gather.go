package nats

import (
	"slices"
	"time"
)

// gather waits for an operation and adds those that wait with it, within the bounds. Two that change the same event do not go together.
func (w *writer) gather() (batch []*operation, ok bool) {
	waiting := w.held
	w.held = nil
	if len(waiting) == 0 {
		first, ok := <-w.ops
		if !ok {
			return nil, false
		}
		waiting = append(waiting, first)
	}
	l := load{keys: make(map[string]string)}
	take := func(o *operation) {
		if l.meets(o) {
			w.wary = true // the second of them will lose
		} else if l.take(o) {
			return
		}
		w.held = append(w.held, o)
	}
	for _, o := range waiting {
		take(o)
	}
	linger := w.linger()
	defer linger.Stop()
	for !l.full() && len(w.held) < maxBatchEntries {
		if len(l.batch) >= w.before.callers {
			linger.Reset(0)
		}
		select {
		case o, ok := <-w.ops:
			if !ok {
				return l.batch, true
			}
			take(o)
			continue
		default:
		}
		select {
		case o, ok := <-w.ops:
			if !ok {
				return l.batch, true
			}
			take(o)
		case <-linger.C:
			return l.batch, true
		}
	}
	return l.batch, true
}

// load is a batch while it is gathered.
type load struct {
	batch                    []*operation
	keys                     map[string]string // and the groups of their entries
	entries, bytes, messages int
}

func (l *load) full() bool {
	return l.entries >= maxBatchEntries || l.bytes >= maxBatchBytes || l.messages >= maxBatchMessages
}

// meets reports that an operation is about the same as one that is in the batch.
func (l *load) meets(o *operation) bool {
	return slices.ContainsFunc(o.entries, func(e *entry) bool {
		return slices.ContainsFunc(e.keys, func(key string) bool {
			group, met := l.keys[key]
			return met && (group == "" || group != e.group)
		})
	})
}

// take adds an operation, if it fits. One alone may be of any size.
func (l *load) take(o *operation) bool {
	bytes, messages := 0, 0
	for _, e := range o.entries {
		bytes, messages = bytes+e.bytes, messages+max(e.most, 1)
	}
	if len(l.batch) > 0 && (l.entries+len(o.entries) > maxBatchEntries || l.bytes+bytes > maxBatchBytes || l.messages+messages > maxBatchMessages) {
		return false
	}
	for _, e := range o.entries {
		for _, key := range e.keys {
			l.keys[key] = e.group
		}
	}
	l.batch, l.entries, l.bytes, l.messages = append(l.batch, o), l.entries+len(o.entries), l.bytes+bytes, l.messages+messages
	return true
}

// linger says how long a batch waits for the callers that the one before has answered: a batch costs the server about the same whatever its size, and without the wait
// the callers would fall into two halves, each of which waits for the batch of the other. It is a small part of what a batch takes, and nothing after a pause.
func (w *writer) linger() *time.Timer {
	const most = 2 * time.Millisecond
	return time.NewTimer(min(w.before.took/8, most) - time.Since(w.before.ended))
}
