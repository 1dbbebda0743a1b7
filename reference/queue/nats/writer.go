package nats

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
)

// The bounds of one batch. A single operation may be larger; it is then alone.
const (
	maxBatchEntries = 400
	maxBatchBytes   = 4 << 20
	// maxBatchMessages is less than the 1000 that a server takes by default.
	maxBatchMessages = 900
	// maxRounds is how often a batch is tried whose conditions fail: each failure means that somebody else got through. From the second on there is a pause before, of
	// up to maxPause: where several handles change the same row again and again, the one that reads it from further away would never be first.
	maxRounds = 100
	maxPause  = 20 * time.Millisecond
)

// message is one message of a batch.
type message struct {
	subject string
	data    []byte
	guard   *guard
}

// guard is a condition: the last message that matches the filter has that sequence, 0 is that there is none.
type guard struct {
	filter string
	expect uint64
}

// entry is a change under conditions: that nobody else changed what it is about. There are two kinds. Most know what they expect to be there, by a filter and a sequence; if something
// else is, they are lost. Those with a sheet read what is there just before the batch is sent, as often as it takes, and decide by that.
type entry struct {
	// keys are classes and hashes of what it is about. Entries that have one in common are never in the same batch, unless they are of the same group, and so become one. Where there is a
	// filter, the first key is that by which an answer about it is found again.
	keys   []string
	group  string
	filter string
	expect uint64
	sheet  sheeted
	// build makes the messages at that time of the server's clock, the one under the condition first. None means that the change is too late, or that there is none.
	build func(now int64) []message
	// bytes and most bound what that is, most the number of messages.
	bytes, most int
	// count says what the change does to the counts.
	count func(tally)

	// lost: the condition did not hold, the change came too late, or there was nothing to change. Nothing happened.
	lost bool
	// err is why an entry with a sheet could not read it. Nothing happened. head is the entry that took this one over, if one did.
	err  error
	head *entry
	// seq is the sequence of the first message, if not lost.
	seq uint64

	messages []message
}

// failure is why the entry could not read what it is about.
func (e *entry) failure() error {
	if e.head != nil {
		return e.head.err
	}
	return e.err
}

func (e *entry) fail(err error) {
	if e.head != nil {
		e = e.head
	}
	e.err = err
}

// failure is why one of some entries could not read what it is about.
func failure(entries []*entry) error {
	for _, e := range entries {
		if err := e.failure(); err != nil {
			return err
		}
	}
	return nil
}

// sheeted is an entry's part that reads before it decides.
type sheeted interface {
	// filters are what it reads first, more what else when that is read. fill takes all of it, and forgets what it had decided.
	filters() []string
	more(view) []string
	fill(view) error
	// join takes over another of its group.
	join(sheeted)
}

// view is what stands in the stream, by class and hash.
type view map[string]stored

// operation is one caller's part of a batch: all of it is in the same one.
type operation struct {
	entries []*entry
	// whole: if one of the entries has an error, nothing happens.
	whole bool
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
	wary   bool
	random *mathrand.Rand // for pauses
}

func newWriter(l *link, s subjects, c *clock) *writer {
	w := &writer{link: l, subjects: s, clock: c, ops: make(chan *operation, maxBatchEntries), stopped: make(chan struct{})}
	w.rename()
	w.random = mathrand.New(mathrand.NewChaCha8(sha256.Sum256([]byte(w.name)))) // a name that nobody else has
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

// errContended: others changed the same events in every round.
var errContended = errors.New("others changed the same events again and again")

// assemble gives the entries of those operations for which somebody still waits. Those of one group become one.
func assemble(batch []*operation) []*entry {
	var live []*entry
	heads := make(map[string]*entry)
	for _, o := range batch {
		if o.state.Load() == stateAbandoned {
			continue
		}
		for _, e := range o.entries {
			if e.head = heads[e.group]; e.head != nil {
				e.head.sheet.join(e.sheet)
				continue
			}
			if e.group != "" {
				heads[e.group] = e
			}
			live = append(live, e)
		}
	}
	return live
}

// commit stores what of the batch may be stored. An error means that nothing was, or that nobody knows.
func (w *writer) commit(batch []*operation) error {
	live := assemble(batch)
	for round := range maxRounds {
		w.pause(round)
		found := 0
		if w.wary {
			var err error
			if found, err = w.sift(live); err != nil {
				return err
			}
		}
		if err := w.fill(live); err != nil {
			return err
		}
		refuse(batch)
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

// pause waits before a round, unless it is the first or the second.
func (w *writer) pause(round int) {
	if round < 2 {
		return
	}
	most := min(time.Millisecond<<min(round, 10), maxPause)
	timer := time.NewTimer(time.Duration(w.random.Int64N(int64(most))))
	defer timer.Stop()
	<-timer.C
}

// fill reads what the entries with a sheet need.
func (w *writer) fill(entries []*entry) error {
	seen := make(view)
	var filters []string
	for _, e := range entries {
		if e.sheet != nil {
			filters = append(filters, e.sheet.filters()...)
		}
	}
	for read := 0; len(filters) > 0; read++ {
		found, err := w.link.last(context.Background(), filters)
		if err != nil {
			return fmt.Errorf("read what is to be changed: %w", err)
		}
		for _, m := range found {
			class, hash, _ := w.subjects.split(m.subject)
			seen[class+hash] = m
		}
		filters = nil
		for _, e := range entries {
			if e.sheet != nil && read == 0 {
				filters = append(filters, e.sheet.more(seen)...)
			}
		}
	}
	for _, e := range entries {
		if e.sheet != nil {
			e.err = e.sheet.fill(seen)
		}
	}
	return nil
}

// refuse drops what cannot be read, and with it the rest of each operation that must be whole, those that share an entry with that too.
func refuse(batch []*operation) {
	for again := true; again; {
		again = false
		for _, o := range batch {
			err := failure(o.entries)
			if err == nil || !o.whole {
				continue
			}
			for _, e := range o.entries {
				if e.failure() == nil {
					e.fail(err)
					again = true
				}
			}
		}
	}
	for _, o := range batch {
		for _, e := range o.entries {
			e.lost = e.lost || e.failure() != nil
		}
	}
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
		if e.sheet != nil {
			continue
		}
		filters = append(filters, e.filter)
		byKey[e.keys[0]] = e
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
			h, g := header(), m.guard
			if i == 0 && e.filter != "" {
				g = &guard{e.filter, e.expect}
			}
			if g != nil {
				h[headerExpect] = []string{strconv.FormatUint(g.expect, 10)}
				if g.filter != m.subject {
					h[headerExpectFor] = []string{g.filter}
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
	w.link.saw(ack.Seq)
	return ack.Seq, nil
}

// close ends the goroutine after everything that was handed in. Nobody may hand in anything any more.
func (w *writer) close() {
	close(w.ops)
	<-w.stopped
}
