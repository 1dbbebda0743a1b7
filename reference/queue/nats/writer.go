package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
)

// The bounds of one batch. A single operation may be larger; it is then alone.
const (
	maxBatchEntries = 400
	maxBatchBytes   = 4 << 20
	// maxRounds is how often a batch is tried whose conditions fail: each failure means that somebody else got through.
	maxRounds = 20
)

// message is one message of a batch.
type message struct {
	subject string
	data    []byte
}

// entry is a change of one event under the condition that nobody else changed it: the last message that matches the filter has the expected sequence, 0 is
// that there is none.
type entry struct {
	// key is the class and the hash, by which an answer about the filter is found again.
	key    string
	filter string
	expect uint64
	// build makes the messages at that time of the server's clock, the one under the condition first. None means that the change is too late.
	build func(now int64) []message
	bytes int
	// count says what the change does to the counts.
	count func(tally)

	// lost: the condition did not hold, or the change came too late. Nothing happened.
	lost bool
	// seq is the sequence of the first message, if not lost.
	seq uint64

	messages []message
}

// operation is one caller's part of a batch: all of it is in the same one.
type operation struct {
	entries []*entry
	// undo, if not nil, gives the operation that takes back what a success gave to a caller who had left by then; then, if not nil, runs after a success.
	undo func() *operation
	then func()

	state  atomic.Uint32
	result chan error
}

const (
	stateWaited    = iota // somebody waits for the result
	stateAnswered         // the result is in the channel
	stateAbandoned        // the caller left
)

func newOperation(entries ...*entry) *operation {
	return &operation{entries: entries, result: make(chan error, 1)}
}

// answer reports whether there was somebody to take the result.
func (o *operation) answer(err error) bool {
	if !o.state.CompareAndSwap(stateWaited, stateAnswered) {
		return false
	}
	o.result <- err
	return true
}

// writer is one goroutine that publishes: all operations that wait when the batch before is stored share the next one, and so one sync of the server's
// disk. The conditions of a batch hold all together or nothing of it is stored; the writer then finds out which did not, and repeats the rest.
type writer struct {
	link     *link
	subjects subjects
	clock    *clock
	ops      chan *operation
	held     []*operation // did not fit into the batch before
	stopped  chan struct{}

	// before is how the batch before went: how many callers it answered or found waiting, and when it ended, after how long.
	before struct {
		callers int
		ended   time.Time
		took    time.Duration
	}

	// name is where the tally of what was stored is kept. After a batch of which nobody knows what became of it there is a new one.
	name  string
	tally tally
	// wary: the last batch met events that somebody else had changed, so that the next one is looked at before it is sent.
	wary bool
}

func newWriter(l *link, s subjects, c *clock) *writer {
	w := &writer{link: l, subjects: s, clock: c, ops: make(chan *operation, maxBatchEntries), stopped: make(chan struct{})}
	w.rename()
	return w
}

func (w *writer) rename() { w.name, w.tally = rand.Text(), make(tally) }

// do hands an operation to the writer and waits for its answer or for the end of ctx.
func (w *writer) do(ctx context.Context, o *operation) error {
	select {
	case w.ops <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.result:
		return err
	case <-ctx.Done():
		if o.state.CompareAndSwap(stateWaited, stateAbandoned) {
			return ctx.Err()
		}
		return <-o.result
	}
}

func (w *writer) run() {
	defer close(w.stopped)
	for {
		batch, ok := w.gather()
		if !ok {
			return
		}
		begin := time.Now()
		err := w.commit(batch)
		w.before.ended = time.Now()
		w.before.took = w.before.ended.Sub(begin)
		w.before.callers = len(batch) + len(w.ops) + len(w.held)
		for _, o := range batch {
			if err == nil && o.then != nil {
				o.then()
			}
			if !o.answer(err) && err == nil && o.undo != nil {
				if u := o.undo(); u != nil {
					w.held = append(w.held, u)
				}
			}
		}
	}
}

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
	keys := make(map[string]bool)
	entries, bytes := 0, 0
	take := func(o *operation) {
		size := 0
		for _, e := range o.entries {
			if keys[e.key] {
				w.wary = true // the second of them will lose
				w.held = append(w.held, o)
				return
			}
			size += e.bytes
		}
		if len(batch) > 0 && (entries+len(o.entries) > maxBatchEntries || bytes+size > maxBatchBytes) {
			w.held = append(w.held, o)
			return
		}
		for _, e := range o.entries {
			keys[e.key] = true
		}
		batch, entries, bytes = append(batch, o), entries+len(o.entries), bytes+size
	}
	for _, o := range waiting {
		take(o)
	}
	linger := w.linger()
	defer linger.Stop()
	for entries < maxBatchEntries && bytes < maxBatchBytes && len(w.held) < maxBatchEntries {
		if len(batch) >= w.before.callers {
			linger.Reset(0)
		}
		select {
		case o, ok := <-w.ops:
			if !ok {
				return batch, true
			}
			take(o)
			continue
		default:
		}
		select {
		case o, ok := <-w.ops:
			if !ok {
				return batch, true
			}
			take(o)
		case <-linger.C:
			return batch, true
		}
	}
	return batch, true
}

// linger says how long a batch waits for the callers that the one before has answered: a batch costs the server about the same whatever its size, and without the wait
// the callers would fall into two halves, each of which waits for the batch of the other. It is a small part of what a batch takes, and nothing after a pause.
func (w *writer) linger() *time.Timer {
	const most = 2 * time.Millisecond
	return time.NewTimer(min(w.before.took/8, most) - time.Since(w.before.ended))
}

// errContended: others changed the same events in every round.
var errContended = errors.New("others changed the same events again and again")

// commit stores what of the batch may be stored. An error means that nothing was, or that nobody knows.
func (w *writer) commit(batch []*operation) error {
	var live []*entry
	for _, o := range batch {
		if o.state.Load() != stateAbandoned {
			live = append(live, o.entries...)
		}
	}
	for range maxRounds {
		found := 0
		if w.wary {
			var err error
			if found, err = w.sift(live); err != nil {
				return err
			}
		}
		now := w.clock.now()
		live = prepare(live, now)
		if len(live) == 0 {
			return nil
		}
		next := w.tally.clone(now)
		for _, e := range live {
			e.count(next)
		}
		last, err := w.publish(live, next)
		switch {
		case err == nil:
			w.tally, w.wary = next, found > 0
			number(live, last)
			return nil
		case hasCode(err, codeWrongLast, codeWrongLastToo):
			w.wary = true
		default:
			if api := (*apiError)(nil); !errors.As(err, &api) {
				w.rename() // nobody knows
			}
			return fmt.Errorf("store a batch: %w", err)
		}
	}
	return errContended
}

// prepare lets the entries make their messages, and drops those that are lost.
func prepare(entries []*entry, now int64) []*entry {
	live := entries[:0]
	for _, e := range entries {
		if e.lost {
			continue
		}
		if e.messages = e.build(now); len(e.messages) == 0 {
			e.lost = true
			continue
		}
		live = append(live, e)
	}
	return live
}

// number gives each entry the sequence of its first message: those of a batch are stored one after the other, the tally last.
func number(entries []*entry, last uint64) {
	next := last
	for _, e := range entries {
		next -= uint64(len(e.messages))
	}
	for _, e := range entries {
		e.seq = next
		next += uint64(len(e.messages))
		e.messages = nil
	}
}

// sift finds the entries whose condition does not hold any more, and how many they are.
func (w *writer) sift(entries []*entry) (found int, err error) {
	filters := make([]string, 0, len(entries))
	byKey := make(map[string]*entry, len(entries))
	for _, e := range entries {
		filters = append(filters, e.filter)
		byKey[e.key] = e
		e.lost = e.lost || e.expect != 0 // unless the message is found
	}
	lasts, err := w.link.last(context.Background(), filters)
	if err != nil {
		return 0, fmt.Errorf("find out who was first: %w", err)
	}
	for _, m := range lasts {
		class, hash, _ := w.subjects.split(m.subject)
		if e := byKey[class+hash]; e != nil {
			e.lost = m.seq != e.expect
		}
	}
	for _, e := range entries {
		if e.lost {
			found++
		}
	}
	return found, nil
}

// The headers of an atomic batch and of its conditions (https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-50.md, read November 2026).
const (
	headerBatch     = "Nats-Batch-Id"
	headerBatchSeq  = "Nats-Batch-Sequence"
	headerCommit    = "Nats-Batch-Commit"
	headerExpect    = "Nats-Expected-Last-Subject-Sequence"
	headerExpectFor = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// publish sends the entries and the tally as one atomic batch and returns the sequence of its last message.
func (w *writer) publish(entries []*entry, next tally) (last uint64, err error) {
	id, n := rand.Text(), 0
	header := func() client.Header {
		n++
		return client.Header{headerBatch: {id}, headerBatchSeq: {strconv.Itoa(n)}}
	}
	for _, e := range entries {
		for i, m := range e.messages {
			h := header()
			if i == 0 {
				h[headerExpect] = []string{strconv.FormatUint(e.expect, 10)}
				if e.filter != m.subject {
					h[headerExpectFor] = []string{e.filter}
				}
			}
			if err := w.link.conn.PublishMsg(&client.Msg{Subject: m.subject, Header: h, Data: m.data}); err != nil {
				return 0, err
			}
		}
	}
	commit := header()
	commit[headerCommit] = []string{"1"}
	var ack struct {
		Seq   uint64 `json:"seq"`
		Batch string `json:"batch"`
		Count int    `json:"count"`
	}
	if err := w.link.request(context.Background(), &client.Msg{Subject: w.subjects.counts(w.name), Header: commit, Data: next.encode()}, &ack); err != nil {
		return 0, err
	}
	if ack.Batch != id || ack.Count != n {
		return 0, fmt.Errorf("the server stored %d of %d messages and knows no atomic batches: it needs version 2.12", ack.Count, n)
	}
	return ack.Seq, nil
}

// close ends the goroutine after everything that was handed in. Nobody may hand in anything any more.
func (w *writer) close() {
	close(w.ops)
	<-w.stopped
}
