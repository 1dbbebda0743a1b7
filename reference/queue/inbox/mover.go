package inbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"floodproof/reference/queue"
)

const (
	// storeWithin bounds one attempt to store what was fetched, and with it how long a Close waits for a store that hangs.
	storeWithin = 10 * time.Second
	// firstPause and longestPause are between attempts that fail.
	firstPause, longestPause = 20 * time.Millisecond, 2 * time.Second
	// strikes is how many messages the store may refuse one by one, without having taken any, until it counts as out of order itself.
	strikes = 3
)

// The provider and type of the dead letter that a message becomes which cannot be read.
const (
	Provider       = "inbox"
	TypeUnreadable = "unreadable"
)

// mover brings messages from the transport into the store. One goroutine of a handle, from the first call that wants to know what there is.
type mover struct {
	transport Transport
	store     Store
	batch     int
	now       func() time.Time
	trouble   func(error)
	tell      func(queue.DeadLetter)
	arrivals  arrivals

	stop  context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	moved  int64         // messages that the store has taken
	passed chan struct{} // closed with the next change of moved
}

// parcel is a message on its way.
type parcel struct {
	message   Message
	jobs      []queue.Job
	published time.Time
	refused   int // how often
}

// startMover starts one; tell hears of the dead letters that it makes.
func startMover(o *Options, tell func(queue.DeadLetter)) *mover {
	ctx, stop := context.WithCancel(context.Background())
	m := &mover{
		transport: o.Transport, store: o.Store, batch: o.Batch, now: o.Now, trouble: o.Trouble, tell: tell, stop: stop, ended: make(chan struct{}), passed: make(chan struct{}),
	}
	go m.run(ctx)
	return m
}

func (m *mover) close() {
	m.stop()
	<-m.ended
}

// run moves until the context ends. What the store refuses is held, and tried again after a pause, each time behind what was not tried yet. A process that ends holding it
// has lost nothing: it was not acknowledged.
func (m *mover) run(ctx context.Context) {
	defer close(m.ended)
	var held []parcel
	pause := firstPause
	for ctx.Err() == nil {
		fetched, err := m.fetch(ctx, len(held), pause)
		if err != nil {
			m.trouble(fmt.Errorf("fetch from the transport: %w", err))
			rest(ctx, pause)
		}
		before := len(held) + len(fetched)
		held = m.move(ctx, append(fetched, held...))
		if err == nil && len(held) == 0 || len(held) < before {
			pause = firstPause
		} else {
			pause = min(2*pause, longestPause)
		}
	}
}

// fetch waits for messages; while others are held, no longer than the pause until those are tried again.
func (m *mover) fetch(ctx context.Context, held int, pause time.Duration) ([]parcel, error) {
	if held >= m.batch {
		rest(ctx, pause)
		return nil, nil
	}
	waiting := ctx
	if held > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, pause)
		defer cancel()
	}
	messages, err := m.transport.Fetch(waiting, m.batch)
	if err != nil && waiting.Err() != nil {
		return nil, nil
	}
	parcels := make([]parcel, len(messages))
	for i, message := range messages {
		parcels[i] = m.open(message)
	}
	slices.SortStableFunc(parcels, func(a, b parcel) int { return a.published.Compare(b.published) }) // what came together is stored in its order
	return parcels, err
}

// open reads a message. What cannot be read is kept as it is, as a dead letter: it must neither stop what comes behind it nor vanish.
func (m *mover) open(message Message) parcel {
	jobs, published, err := decode(message.Body)
	if err == nil {
		return parcel{message: message, jobs: jobs, published: published}
	}
	hash := sha256.Sum256(message.Body) // the same message again is the same letter
	return parcel{message: message, published: m.now(), jobs: []queue.Job{{
		Provider: Provider, EventID: hex.EncodeToString(hash[:]), Type: TypeUnreadable, Payload: message.Body, ReceivedAt: m.now(),
		DeadOnArrival: "a message of the transport cannot be read: " + err.Error(),
	}}}
}

// move stores and acknowledges, in this order, and returns what the store did not take.
func (m *mover) move(ctx context.Context, parcels []parcel) []parcel {
	if len(parcels) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWithin) // what is begun is finished
	defer cancel()
	r := round{mover: m}
	r.put(ctx, parcels)
	slices.SortStableFunc(r.refused, func(a, b parcel) int { return cmp.Compare(a.refused, b.refused) })
	return r.refused
}

// round is one attempt to store some messages.
type round struct {
	mover    *mover
	refused  []parcel
	taken    bool
	failures int
}

// put stores parcels with one call, or, if the store refuses, in halves: one message that it cannot take must not hold up the others.
func (r *round) put(ctx context.Context, parcels []parcel) {
	if !r.taken && r.failures >= strikes {
		r.refused = append(r.refused, parcels...)
		return
	}
	err := r.mover.put(ctx, parcels)
	switch {
	case err == nil:
		r.taken = true
	case len(parcels) == 1:
		r.failures++
		parcels[0].refused++
		r.refused = append(r.refused, parcels[0])
		r.mover.trouble(fmt.Errorf("store what the transport brought, event %q of %s first: %w", parcels[0].jobs[0].EventID, parcels[0].jobs[0].Provider, err))
	default:
		half := len(parcels) / 2
		r.put(ctx, parcels[:half])
		r.put(ctx, parcels[half:])
	}
}

func (m *mover) put(ctx context.Context, parcels []parcel) error {
	var jobs []queue.Job
	messages := make([]Message, len(parcels))
	a := arrival{begin: m.now(), published: parcels[0].published}
	for i := range parcels {
		jobs = append(jobs, parcels[i].jobs...)
		messages[i] = parcels[i].message
		if parcels[i].published.Before(a.published) {
			a.published = parcels[i].published
		}
	}
	if err := m.store.Enqueue(ctx, jobs...); err != nil {
		return err
	}
	a.end = m.now()
	m.arrivals.add(a)
	for i := range jobs {
		if j := &jobs[i]; j.Provider == Provider && j.Type == TypeUnreadable {
			m.tell(queue.DeadLetter{Job: *j, Reason: j.DeadOnArrival, At: a.end}) // once more if it comes once more, which nobody can tell
		}
	}
	if err := m.transport.Ack(ctx, messages); err != nil {
		m.trouble(fmt.Errorf("acknowledge to the transport: %w", err)) // they come again, and are known
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.moved += int64(len(parcels))
	close(m.passed)
	m.passed = make(chan struct{})
	return nil
}

// progress is how many messages were moved, and a channel that is closed when there are more.
func (m *mover) progress() (int64, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.moved, m.passed
}

// rest waits, or until the context ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
