package inbox_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/sqlite"
)

// carrier is a transport that knows nothing but messages: what was fetched comes again after a while if it is not acknowledged. It is durable, and shared by processes, because
// the messages are in files of their own.
type carrier struct {
	files      *sqlite.Queue
	maxMessage int
}

// visibility is how long a fetched message is hidden from others. It is short, so that the tests see messages come again without being asked to.
const visibility = time.Second

func openCarrier(ctx context.Context, dir string) (*carrier, error) {
	q, err := sqlite.Open(ctx, dir, sqlite.Options{Lease: visibility})
	if err != nil {
		return nil, err
	}
	return &carrier{files: q}, nil
}

func (c *carrier) Publish(ctx context.Context, messages [][]byte) error {
	jobs := make([]queue.Job, len(messages))
	for i, m := range messages {
		jobs[i] = queue.Job{Provider: "message", EventID: rand.Text(), Payload: m}
	}
	return c.files.Enqueue(ctx, jobs...)
}

func (c *carrier) Fetch(ctx context.Context, limit int) ([]inbox.Message, error) {
	leases, err := c.files.Receive(ctx, "", limit)
	messages := make([]inbox.Message, len(leases))
	for i, l := range leases {
		messages[i] = inbox.Message{Body: l.Payload, Handle: l}
	}
	return messages, err
}

func (c *carrier) Ack(ctx context.Context, messages []inbox.Message) error {
	var errs []error
	for _, m := range messages {
		errs = append(errs, c.files.Settle(ctx, m.Handle.(queue.Lease), queue.Done()))
	}
	return errors.Join(errs...)
}

func (c *carrier) Waiting(ctx context.Context) (int64, error) {
	d, err := c.files.Depth(ctx)
	return d.Waiting + d.Leased, err
}

func (c *carrier) Promise(context.Context) (inbox.Promise, error) {
	claims := c.files.Claims()
	return inbox.Promise{Durability: claims.Durability, MaxMessage: c.maxMessage, Version: "files of the test", Settings: map[string]string{"sync": claims.Settings["sync"]}}, nil
}

func (c *carrier) Close(ctx context.Context) error { return c.files.Close(ctx) }

// bad is a transport on which everything goes wrong now and then, as its seed says: publishes that fail before or after they took effect, messages that come twice and in another order,
// fetches that fail, acknowledgements that fail or are lost.
type bad struct {
	carrier
	odds float64 // of each

	mu     sync.Mutex
	random *mathrand.Rand
	again  []inbox.Message // to be given once more
	faults int
}

var errBad = errors.New("bad luck")

func newBad(c *carrier, seed uint64, odds float64) *bad {
	return &bad{carrier: *c, odds: odds, random: mathrand.New(mathrand.NewPCG(seed, 1))}
}

func (b *bad) hit() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	hit := b.random.Float64() < b.odds
	if hit {
		b.faults++
	}
	return hit
}

func (b *bad) Publish(ctx context.Context, messages [][]byte) error {
	switch {
	case b.hit():
		return errBad
	case b.hit(): // a part of them, before it failed
		return errors.Join(errBad, b.carrier.Publish(ctx, messages[:len(messages)/2]))
	case b.hit(): // all of them, and the answer is lost
		return errors.Join(errBad, b.carrier.Publish(ctx, messages))
	}
	return b.carrier.Publish(ctx, messages)
}

func (b *bad) Fetch(ctx context.Context, limit int) ([]inbox.Message, error) {
	if b.hit() {
		return nil, errBad
	}
	messages, err := b.carrier.Fetch(ctx, limit)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	messages = append(messages, b.again...)
	b.again = nil
	for _, m := range messages {
		if b.random.Float64() < b.odds {
			b.again, b.faults = append(b.again, m), b.faults+1
		}
	}
	b.random.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	return messages, nil
}

func (b *bad) Ack(ctx context.Context, messages []inbox.Message) error {
	if b.hit() {
		return errBad
	}
	if b.hit() { // lost without a word
		return nil
	}
	_ = b.carrier.Ack(ctx, messages) // those that were given twice are gone the second time
	return nil
}

// badStore is a store that fails now and then, before or after it took what it was given.
type badStore struct {
	*sqlite.Queue
	hit func() bool
}

func (s *badStore) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	switch {
	case s.hit():
		return errBad
	case s.hit():
		return errors.Join(errBad, s.Queue.Enqueue(ctx, jobs...))
	}
	return s.Queue.Enqueue(ctx, jobs...)
}

// hooked is a transport and a store of which a test replaces what it likes.
type hooked struct {
	inbox.Transport
	publish func(ctx context.Context, messages [][]byte) error
	ack     func(ctx context.Context, messages []inbox.Message) error
}

func (h *hooked) Publish(ctx context.Context, messages [][]byte) error {
	if h.publish != nil {
		return h.publish(ctx, messages)
	}
	return h.Transport.Publish(ctx, messages)
}

func (h *hooked) Ack(ctx context.Context, messages []inbox.Message) error {
	if h.ack != nil {
		return h.ack(ctx, messages)
	}
	return h.Transport.Ack(ctx, messages)
}

func (h *hooked) Waiting(ctx context.Context) (int64, error) {
	return h.Transport.(inbox.Waiter).Waiting(ctx)
}

func (h *hooked) Promise(ctx context.Context) (inbox.Promise, error) {
	return h.Transport.(inbox.Describer).Promise(ctx)
}

type hookedStore struct {
	*sqlite.Queue
	enqueue func(ctx context.Context, jobs ...queue.Job) error
}

func (h *hookedStore) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if h.enqueue != nil {
		return h.enqueue(ctx, jobs...)
	}
	return h.Queue.Enqueue(ctx, jobs...)
}

// place is where a queue of a test is.
type place struct{ dir string }

func newPlace(t testing.TB) place { t.Helper(); return place{t.TempDir()} }

func (p place) carrier(t testing.TB) *carrier {
	t.Helper()
	c, err := openCarrier(t.Context(), filepath.Join(p.dir, "transport"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p place) store(t testing.TB, lease time.Duration) *sqlite.Queue {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(p.dir, "store"), sqlite.Options{Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// openPlace opens a queue as any process would.
func openPlace(ctx context.Context, dir string, lease time.Duration) (queue.Queue, error) {
	return openPlaceOn(ctx, dir, sqlite.Options{Lease: lease})
}

// openRetaining opens one whose store deletes what is old. The shortest retention of that is a minute: by a clock that runs that much faster.
func openRetaining(ctx context.Context, dir string, lease, retention time.Duration) (queue.Queue, error) {
	faster, begin := sqlite.MinRetention/retention, time.Now()
	now := func() time.Time { return begin.Add(time.Since(begin) * faster) }
	return openPlaceOn(ctx, dir, sqlite.Options{Lease: lease * faster, Retention: sqlite.MinRetention, Now: now})
}

func openPlaceOn(ctx context.Context, dir string, store sqlite.Options) (queue.Queue, error) {
	c, err := openCarrier(ctx, filepath.Join(dir, "transport"))
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, filepath.Join(dir, "store"), store)
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return inbox.Open(ctx, inbox.Options{Transport: c, Store: s})
}

// open opens a queue that is closed with the test, if not before.
func open(t testing.TB, o inbox.Options) *inbox.Queue {
	t.Helper()
	q, err := inbox.Open(t.Context(), o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { closeQueue(t, q) })
	return q
}

func closeQueue(t testing.TB, q *inbox.Queue) {
	t.Helper()
	if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func job(id string) queue.Job {
	return queue.Job{Provider: "stripe", EventID: id, Payload: []byte(`{"id":"` + id + `"}`)}
}

func enqueue(t testing.TB, q queue.Queue, jobs ...queue.Job) {
	t.Helper()
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
}

// settleAll receives and settles n jobs, and returns how often each came.
func settleAll(t testing.TB, q queue.Queue, n int) map[string]int {
	t.Helper()
	got := make(map[string]int)
	for settled := 0; settled < n; {
		leases, err := q.Receive(t.Context(), "", n-settled)
		if err != nil {
			t.Fatalf("Receive after %d of %d: %v", settled, n, err)
		}
		for _, l := range leases {
			got[l.EventID]++
			if err := q.Settle(t.Context(), l, queue.Done()); err != nil {
				t.Fatalf("Settle of %s: %v", l.EventID, err)
			}
			settled++
		}
	}
	return got
}

// empty waits until nothing is left in the transport, and says what the store then holds.
func empty(t testing.TB, q *inbox.Queue, c inbox.Waiter) queue.Depth {
	t.Helper()
	for {
		d, err := q.Depth(t.Context())
		if err != nil {
			t.Fatalf("Depth: %v", err)
		}
		if n, err := c.Waiting(t.Context()); err == nil && n == 0 {
			return d
		}
	}
}

// counter counts troubles.
type counter struct{ n atomic.Int64 }

func (c *counter) note(error) { c.n.Add(1) }

func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%04d", prefix, i)
	}
	return out
}
