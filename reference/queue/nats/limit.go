package nats

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// Take implements queue.Limiter, by the server's clock as this handle knows it. A limit is a message that each taker replaces, under the condition that it is still the one that was
// read. Those of one handle that wait for the batch before are taken together.
//
// Note: a stream in the server's memory would not be synced, and a turn would cost less. It is a second stream to make, to allow and to lose, for what is one small message of a
// batch that most often is sent anyway.
func (q *Queue) Take(ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
	if err := limit.Check(); err != nil {
		return 0, err
	}
	if err := q.begin(); err != nil {
		return 0, err
	}
	defer q.calls.Done()
	t := &turns{subject: q.subjects.limit(hashOf("", limit.Name)), key: "l" + hashOf("", limit.Name), limit: limit, n: n}
	e := t.entry()
	err := q.writer.do(ctx, newOperation(e))
	if err == nil {
		err = e.failure()
	}
	if err != nil {
		return 0, fmt.Errorf("take a turn of limit %q: %w", limit.Name, err)
	}
	return t.wait, nil
}

// turns are the turns that one caller takes, and those of the callers that are taken with it.
type turns struct {
	subject, key string
	limit        queue.Limit
	n            int

	left  int64
	found uint64
	wait  time.Duration
	with  []*turns
}

func (t *turns) entry() *entry {
	return &entry{keys: []string{t.key}, group: t.key, sheet: t, bytes: 128, most: 1, build: t.messages, count: func(tally) {}}
}

func (t *turns) filters() []string  { return []string{t.subject} }
func (t *turns) more(view) []string { return nil }

func (t *turns) fill(seen view) error {
	t.left, t.found = 0, 0
	m, ok := seen[t.key]
	if !ok {
		return nil
	}
	if len(m.data) != 8 {
		return fmt.Errorf("read %s: %w", m.subject, errDamaged)
	}
	t.left, t.found = int64(binary.BigEndian.Uint64(m.data)), m.seq
	return nil
}

// join implements sheeted. Those that are taken together are taken one after the other.
func (t *turns) join(other sheeted) { t.with = append(t.with, other.(*turns)) }

func (t *turns) messages(now int64) []message {
	left := t.left
	for _, one := range append([]*turns{t}, t.with...) {
		left, one.wait = one.limit.Reserve(left, now*int64(time.Microsecond), one.n)
	}
	return []message{{subject: t.subject, data: binary.BigEndian.AppendUint64(nil, uint64(left)), guard: &guard{t.subject, t.found}}}
}

var _ queue.Limiter = (*Queue)(nil)
