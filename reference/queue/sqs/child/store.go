package child

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// dedupFor is how long a FIFO queue knows a deduplication id, whatever became of its message
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/using-messagededuplicationid-property.html, read November 2026).
const dedupFor = 5 * time.Minute

// waiting is how many changes may wait for the log before more have to.
const waiting = 256

// queue is one queue. The store's lock guards it.
type queue struct {
	number   uint64
	name     string
	settings map[string]string
	made     int64
	changed  int64

	line  line
	items map[uint64]*item
	// purged is the number up to which messages are gone, also those that are on their way into the log.
	purged uint64
	dedup  map[string]known
	recent []known // of dedup, oldest first
	woken  chan struct{}
}

// known is a message that a FIFO queue has taken.
type known struct {
	id, messageID string
	number        uint64
	at            int64
}

// setting is an attribute of the queue as a number.
func (q *queue) setting(name string, otherwise int) int {
	n, err := strconv.Atoi(q.settings[name])
	if err != nil {
		return otherwise
	}
	return n
}

// remember notes a deduplication id.
func (q *queue) remember(k known) {
	if _, ok := q.dedup[k.id]; ok {
		return
	}
	if q.dedup == nil {
		q.dedup = make(map[string]known)
	}
	q.dedup[k.id] = k
	q.recent = append(q.recent, k)
}

// forget drops the deduplication ids that are too old.
func (q *queue) forget(now int64) {
	for len(q.recent) > 0 && q.recent[0].at+dedupFor.Microseconds() <= now {
		delete(q.dedup, q.recent[0].id)
		q.recent = q.recent[1:]
	}
}

// wake tells those who wait for a message to look again.
func (q *queue) wake() {
	if q.woken != nil {
		close(q.woken)
		q.woken = nil
	}
}

// store is all queues, and the log in which they are. What changes them goes through the log first; what is only about who has received what is kept in memory.
type store struct {
	now     func() time.Time
	journal *journal
	intake  chan *change
	ended   chan struct{}
	// broken is told why the log cannot be written any more. Nothing is answered after that.
	broken func(error)

	mu       sync.Mutex
	queues   map[string]*queue
	byNumber map[uint64]*queue
	last     uint64 // number that was given away
	token    uint64
}

// change is something that must be in the log before it is answered. apply finds out what to write, with the lock held.
type change struct {
	apply func(*store) []record
	done  chan struct{}
}

// openStore opens what is in dir. Tokens begin with the time, so that none of an earlier server counts.
func openStore(dir string, sync bool, now func() time.Time) (*store, error) {
	s := &store{
		now: now, intake: make(chan *change, waiting), ended: make(chan struct{}), broken: func(err error) { panic(err) },
		queues: make(map[string]*queue), byNumber: make(map[uint64]*queue), token: uint64(now().UnixMicro()),
	}
	j, err := openJournal(dir, sync, func(r record, p place) { s.settle(&r, p) })
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	s.journal = j
	go s.run()
	return s, nil
}

// do puts a change into the log. It returns when that is done, whatever becomes of whoever asked.
func (s *store) do(apply func(*store) []record) {
	c := &change{apply: apply, done: make(chan struct{})}
	s.intake <- c
	<-c.done
}

// close ends the writing. Nobody calls do any more.
func (s *store) close() error {
	close(s.intake)
	<-s.ended
	return s.journal.close()
}

// run writes changes, each time all that came while the last were written.
func (s *store) run() {
	defer close(s.ended)
	for c := range s.intake {
		group := []*change{c}
	collect:
		for len(group) < waiting {
			select {
			case more, ok := <-s.intake:
				if !ok {
					break collect
				}
				group = append(group, more)
			default:
				break collect
			}
		}
		if err := s.commit(group); err != nil {
			s.broken(err)
			return
		}
		for _, c := range group {
			close(c.done)
		}
	}
}

func (s *store) commit(group []*change) error {
	s.mu.Lock()
	var records []record
	rolled := s.journal.full()
	if rolled {
		if err := s.journal.roll(); err != nil {
			s.mu.Unlock()
			return fmt.Errorf("begin a file of the log: %w", err)
		}
		records = s.snapshot()
	}
	for _, c := range group {
		records = append(records, c.apply(s)...)
	}
	s.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	places, err := s.journal.write(records)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range records {
		s.settle(&records[i], places[i])
	}
	if rolled { // the new file says all that the old ones do
		return s.journal.trim(s.now().UnixMicro())
	}
	return nil
}

// snapshot is what each file begins with, so that those before it can go: all queues, and the last number.
func (s *store) snapshot() []record {
	records := []record{{op: opNumber, number: s.last}}
	for _, q := range s.queues {
		records = append(records, record{op: opQueue, queue: q.number, at: q.made, name: q.name, settings: maps.Clone(q.settings)})
	}
	return records
}

// settle applies what is in the log now. It is called for old records when the log is opened, and for new ones when they are synced.
func (s *store) settle(r *record, p place) {
	s.last = max(s.last, r.number, r.queue)
	q := s.byNumber[r.queue]
	switch {
	case r.op == opQueue && q == nil:
		q = &queue{number: r.queue, name: r.name, settings: r.settings, made: r.at, changed: r.at, items: make(map[uint64]*item)}
		q.line.fifo = r.settings["FifoQueue"] == "true"
		s.queues[r.name], s.byNumber[r.queue] = q, q
	case q == nil:
	case r.op == opQueue:
		q.settings, q.changed = r.settings, r.at
	case r.op == opGone:
		s.clear(q, s.last)
		delete(s.byNumber, q.number)
		if s.queues[q.name] == q {
			delete(s.queues, q.name)
		}
		q.wake()
	case r.op == opPurge:
		s.clear(q, r.number)
	case r.op == opSend:
		s.place(q, r, p)
	case r.op == opDelete:
		if m := q.items[r.number]; m != nil {
			s.drop(q, m)
		}
	}
}

func (s *store) place(q *queue, r *record, p place) {
	if r.message.dedup != "" {
		q.remember(known{id: r.message.scope(q), messageID: r.message.id, number: r.number, at: r.at})
		p.segment.keepUntil = max(p.segment.keepUntil, r.at+dedupFor.Microseconds())
	}
	if r.number <= q.purged {
		return
	}
	m := &item{number: r.number, place: p, sent: r.at}
	q.items[r.number] = m
	p.segment.live++
	q.line.add(m, r.message.group, r.message.until)
	q.wake()
}

// drop forgets a message whose deletion is in the log.
func (s *store) drop(q *queue, m *item) {
	q.line.remove(m)
	delete(q.items, m.number)
	m.place.segment.live--
	if q.line.fifo {
		q.wake() // its group goes on
	}
}

// clear drops all messages up to a number.
func (s *store) clear(q *queue, upTo uint64) {
	q.purged = max(q.purged, upTo)
	for _, number := range slices.Collect(maps.Keys(q.items)) {
		if number <= upTo {
			s.drop(q, q.items[number])
		}
	}
}

// received is a message as its receiver gets it.
type received struct {
	record
	handle string
	count  int
	first  int64
}

// try receives what is visible, up to limit. If that is nothing, it says when to try again: when the channel is closed, and after the wait if that is not negative.
func (s *store) try(q *queue, limit int, hidden time.Duration) (got []received, woken <-chan struct{}, wait time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now().UnixMicro()
	q.line.expire(now)
	due := now + hidden.Microseconds()
	for _, m := range q.line.take(limit, due) {
		r, err := m.place.read()
		if err != nil {
			return nil, nil, 0, err
		}
		s.token++
		m.token = s.token
		m.received++
		if m.first == 0 {
			m.first = now
		}
		got = append(got, received{record: r, handle: handle(q.number, m.number, m.token), count: m.received, first: m.first})
	}
	if hidden == 0 {
		q.line.expire(now)
	}
	if len(got) > 0 {
		return got, nil, 0, nil
	}
	if q.woken == nil {
		q.woken = make(chan struct{})
	}
	if at, ok := q.line.next(); ok {
		return nil, q.woken, max(time.Duration(at-now)*time.Microsecond, 0), nil
	}
	return nil, q.woken, -1, nil
}

// receive waits for a message, for a while.
func (s *store) receive(ctx context.Context, q *queue, limit int, hidden, patience time.Duration) ([]received, error) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	until := s.now().Add(patience)
	for ctx.Err() == nil {
		got, woken, wait, err := s.try(q, limit, hidden)
		left := until.Sub(s.now())
		if len(got) > 0 || err != nil || left <= 0 {
			return got, err
		}
		if wait < 0 || wait > left {
			wait = left
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-woken:
		case <-timer.C:
		}
	}
	return nil, nil
}

// handle is what a receiver needs to delete a message: queue, message, and the proof that he is its last receiver.
func handle(queue, message, token uint64) string {
	var b []byte
	for _, n := range []uint64{queue, message, token} {
		b = binary.AppendUvarint(b, n)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// readHandle takes a handle apart; false for what never was one.
func readHandle(text string) (queue, message, token uint64, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return 0, 0, 0, false
	}
	s := scanner{rest: b}
	queue, message, token = s.number(), s.number(), s.number()
	return queue, message, token, !s.failed && len(s.rest) == 0
}

// newID is a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// failure is an error as the protocol has it.
type failure struct {
	// code is the shape's name, query the name of the older protocol where that is another one.
	code, query, message string
	status               int
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func invalid(format string, args ...any) *failure {
	return &failure{code: "InvalidParameterValue", message: fmt.Sprintf(format, args...), status: http.StatusBadRequest}
}
