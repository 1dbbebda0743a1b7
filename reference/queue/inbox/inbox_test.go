package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"floodproof/reference/queue"
	"floodproof/reference/queue/inbox"
	"floodproof/reference/queue/queuetest"
)

func TestMain(m *testing.M) {
	queuetest.Child(openPlace)
	goleak.VerifyTestMain(m)
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(t testing.TB) queuetest.Opened {
		p := newPlace(t)
		return queuetest.Opened{
			Claims:  open(t, inbox.Options{Transport: p.carrier(t), Store: p.store(t, 0)}).Claims(),
			Address: p.dir,
			Open: func(ctx context.Context, lease time.Duration) (queue.Queue, error) {
				return openPlace(ctx, p.dir, lease)
			},
			Retain: func(ctx context.Context, lease, retention time.Duration) (queue.Queue, error) {
				return openRetaining(ctx, p.dir, lease, retention)
			},
		}
	})
}

// TestCrash ends a handle at each point of a message's way. Whatever comes of it, the job is there once.
func TestCrash(t *testing.T) {
	for name, crash := range map[string]struct {
		// after is when the process is gone: nothing that it does reaches the transport or the store any more.
		afterStore, afterAck bool
	}{
		"before the store has it":                            {},
		"after the store has it, before the acknowledgement": {afterStore: true},
		"after the acknowledgement":                          {afterStore: true, afterAck: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			reached := make(chan struct{}, 1)
			dead := func() error {
				select {
				case reached <- struct{}{}:
				default:
				}
				return errors.New("the process is gone")
			}
			store := &hookedStore{Queue: p.store(t, time.Minute)}
			if !crash.afterStore {
				store.enqueue = func(context.Context, ...queue.Job) error { return dead() }
			}
			c := p.carrier(t)
			transport := &hooked{Transport: c}
			transport.ack = func(ctx context.Context, messages []inbox.Message) error {
				if crash.afterAck {
					return errors.Join(c.Ack(ctx, messages), dead())
				}
				return dead()
			}
			first := open(t, inbox.Options{Transport: transport, Store: store})
			enqueue(t, first, job("once"))
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-reached; cancel() }()
			if leases, err := first.Receive(ctx, "none", 1); err == nil {
				t.Fatalf("a lane without jobs gave %v", leases)
			}
			closeQueue(t, first)

			second := open(t, inbox.Options{Transport: p.carrier(t), Store: p.store(t, time.Minute)})
			if got := settleAll(t, second, 1); got["once"] != 1 {
				t.Errorf("came %v, want the job", got)
			}
			d := empty(t, second, p.watch(t)) // it has come again by now, if it was not acknowledged
			if d.Done != 1 || d.Waiting+d.Leased+d.Dead != 0 {
				t.Errorf("depth: got %+v, want one done job and nothing else", d)
			}
		})
	}
}

// watch is another handle on the transport, to look at.
func (p place) watch(t testing.TB) *carrier {
	t.Helper()
	c := p.carrier(t)
	t.Cleanup(func() {
		if err := c.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestStorm lets everything go wrong at once. What was acknowledged, and of what was not only what was sent, is there once.
func TestStorm(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			const handles, each = 2, 150
			var all []*bad
			var queues []*inbox.Queue
			for i := range handles {
				b := newBad(p.carrier(t), 10*seed+uint64(i), 0.12)
				all = append(all, b)
				queues = append(queues, open(t, inbox.Options{Transport: b, Store: &badStore{p.store(t, time.Minute), b.hit}, Batch: 16}))
			}
			var wg sync.WaitGroup
			for g := range 8 {
				wg.Go(func() {
					for _, id := range ids(fmt.Sprint("e", g), each/8+1) {
						for queues[g%handles].Enqueue(t.Context(), job(id)) != nil { // as a provider: until it is acknowledged
							if t.Context().Err() != nil {
								return
							}
						}
					}
				})
			}
			got := settleAll(t, queues[0], 8*(each/8+1))
			wg.Wait()
			for id, times := range got {
				if times != 1 {
					t.Errorf("%s came %d times", id, times)
				}
			}
			faults := 0
			for _, b := range all {
				b.mu.Lock()
				b.odds = 0
				faults += b.faults
				b.mu.Unlock()
			}
			d := empty(t, queues[1], p.watch(t))
			if d.Done != int64(len(got)) || d.Waiting+d.Leased+d.Dead != 0 {
				t.Errorf("depth at the end: got %+v, want %d done and nothing else", d, len(got))
			}
			if faults < 20 {
				t.Errorf("only %d things went wrong: the test says nothing", faults)
			}
		})
	}
}

// TestUnreadable: what is no message does not hold up those behind it, and is kept.
func TestUnreadable(t *testing.T) {
	p := newPlace(t)
	c := p.watch(t)
	q := open(t, inbox.Options{Transport: p.carrier(t), Store: p.store(t, time.Minute)})
	told := make(chan string, 100)
	q.TellDead(func(l queue.DeadLetter) { told <- l.Reason })
	garbage := [][]byte{[]byte("hello"), []byte("fp\x09\x00\x00\x00\x00\x00of the future"), []byte("fp\x01\x00\x00\x00\x00\x00damaged"), {}}
	if err := c.Publish(t.Context(), garbage); err != nil {
		t.Fatal(err)
	}
	if err := c.Publish(t.Context(), garbage[:1]); err != nil { // the same once more is the same letter
		t.Fatal(err)
	}
	enqueue(t, q, job("behind it"))
	if got := settleAll(t, q, 1); got["behind it"] != 1 {
		t.Errorf("came %v, want the job behind the garbage", got)
	}
	empty(t, q, c)
	reasons := make(map[string]string)
	err := q.DeadLetters(t.Context(), func(l queue.DeadLetter) error {
		if l.Provider != inbox.Provider || l.Type != inbox.TypeUnreadable || l.EventID == "" {
			t.Errorf("letter: got %s %s %q, want one of the inbox", l.Provider, l.Type, l.EventID)
		}
		reasons[string(l.Payload)] = l.Reason
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"something else publishes", "the format 9", "checksum", "something else publishes"} {
		if got := reasons[string(garbage[i])]; !strings.Contains(got, want) {
			t.Errorf("%q is a letter for the reason %q, want one with %q", garbage[i], got, want)
		}
	}
	heard := make(map[string]bool)
	for len(told) > 0 {
		heard[<-told] = true
	}
	for _, reason := range reasons {
		if !heard[reason] {
			t.Errorf("nobody was told of the letter with the reason %q", reason)
		}
	}
	if len(reasons) != len(garbage) {
		t.Errorf("there are %d letters, want %d", len(reasons), len(garbage))
	}
	first := ""
	if err := q.DeadLetters(t.Context(), func(l queue.DeadLetter) error { first = l.EventID; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := q.Redrive(t.Context(), inbox.Provider, first); err != nil {
		t.Errorf("Redrive of a letter: %v", err)
	}
}

// TestStoreRefusesOne: a job that the store does not take is tried again and holds up nobody; it shows in the depth.
func TestStoreRefusesOne(t *testing.T) {
	p := newPlace(t)
	store := &hookedStore{Queue: p.store(t, time.Minute)}
	var mu sync.Mutex
	refuse := true
	tried := make(chan struct{}, 64)
	store.enqueue = func(ctx context.Context, jobs ...queue.Job) error {
		mu.Lock()
		defer mu.Unlock()
		for _, j := range jobs {
			if j.EventID == "hopeless-0003" && refuse {
				select {
				case tried <- struct{}{}:
				default:
				}
				return errors.New("not this one")
			}
		}
		return store.Queue.Enqueue(ctx, jobs...)
	}
	var troubles counter
	q := open(t, inbox.Options{Transport: p.carrier(t), Store: store, Trouble: troubles.note})
	for _, id := range ids("hopeless", 20) {
		enqueue(t, q, job(id))
	}
	if got := settleAll(t, q, 19); got["hopeless-0003"] != 0 || len(got) != 19 {
		t.Errorf("came %d, want the 19 others", len(got))
	}
	for range 4 { // it is tried again
		<-tried
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if d, err := q.Depth(ctx); err != nil || d.Waiting != 1 || d.Done != 19 {
		t.Errorf("depth: got %+v, error %v; want 19 done and one that waits", d, err)
	}
	if troubles.n.Load() == 0 {
		t.Errorf("nobody was told")
	}
	mu.Lock()
	refuse = false
	mu.Unlock()
	if got := settleAll(t, q, 1); got["hopeless-0003"] != 1 {
		t.Errorf("came %v, want the one that was refused", got)
	}
}

// TestGroupCommit: calls that wait for a Publish share the next.
func TestGroupCommit(t *testing.T) {
	p := newPlace(t)
	c := p.carrier(t)
	transport := &hooked{Transport: c}
	begun, let := make(chan int, 100), make(chan struct{})
	transport.publish = func(ctx context.Context, messages [][]byte) error {
		begun <- len(messages)
		<-let
		return c.Publish(ctx, messages)
	}
	q := open(t, inbox.Options{Transport: transport, Store: p.store(t, time.Minute), Publishes: 1})
	const calls = 60
	var wg sync.WaitGroup
	call := func(id string) {
		wg.Go(func() {
			if err := q.Enqueue(t.Context(), job(id), job(id+" too")); err != nil {
				t.Errorf("Enqueue: %v", err)
			}
		})
	}
	call("first")
	if n := <-begun; n != 1 {
		t.Errorf("the first Publish has %d messages, want 1: two jobs of one call are one message", n)
	}
	for _, id := range ids("grouped", calls) {
		call(id)
	}
	close(let)
	wg.Wait()
	close(begun)
	publishes, messages := 0, 0
	for n := range begun {
		publishes, messages = publishes+1, messages+n
	}
	if messages != calls || publishes > calls/2 {
		t.Errorf("%d messages in %d publishes, want %d in few", messages, publishes, calls)
	}
	if got := settleAll(t, q, 2*calls+2); len(got) != 2*calls+2 {
		t.Errorf("%d jobs came, want %d", len(got), 2*calls+2)
	}
}

// TestPublishFails: everybody who shared it is told, and the next is tried afresh.
func TestPublishFails(t *testing.T) {
	p := newPlace(t)
	c := p.carrier(t)
	transport := &hooked{Transport: c}
	down := errors.New("down")
	transport.publish = func(context.Context, [][]byte) error { return down }
	q := open(t, inbox.Options{Transport: transport, Store: p.store(t, time.Minute)})
	var wg sync.WaitGroup
	for _, id := range ids("down", 10) {
		wg.Go(func() {
			if err := q.Enqueue(t.Context(), job(id)); !errors.Is(err, down) {
				t.Errorf("Enqueue: got error %v, want %v", err, down)
			}
		})
	}
	wg.Wait()
	transport.publish = nil
	enqueue(t, q, job("up"))
	if got := settleAll(t, q, 1); got["up"] != 1 {
		t.Errorf("came %v", got)
	}

	transport.publish = func(ctx context.Context, _ [][]byte) error { <-ctx.Done(); return ctx.Err() }
	stuck := open(t, inbox.Options{Transport: transport, Store: p.store(t, time.Minute), PublishWithin: 20 * time.Millisecond})
	if err := stuck.Enqueue(t.Context(), job("stuck")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Enqueue on a broker that takes nothing: got error %v, want that of the bound", err)
	}
	transport.publish = nil
}

// TestChunks: a call that is too large for one message becomes several; a job that is too large for one is refused.
func TestChunks(t *testing.T) {
	p := newPlace(t)
	c := p.carrier(t)
	c.maxMessage = 64 << 10
	transport := &hooked{Transport: c}
	var sizes []int
	transport.publish = func(ctx context.Context, messages [][]byte) error {
		for _, m := range messages {
			sizes = append(sizes, len(m))
		}
		return c.Publish(ctx, messages)
	}
	q := open(t, inbox.Options{Transport: transport, Store: p.store(t, time.Minute)})
	random := newBad(c, 7, 0).random
	var jobs []queue.Job
	for _, id := range ids("large", 20) {
		j := job(id)
		j.Payload = make([]byte, 10_000)
		for i := range j.Payload {
			j.Payload[i] = byte(random.Uint32())
		}
		jobs = append(jobs, j)
	}
	enqueue(t, q, jobs...)
	if len(sizes) < 4 || len(sizes) > 8 {
		t.Errorf("200 kB of noise became messages of %d bytes", sizes)
	}
	for _, size := range sizes {
		if size > c.maxMessage {
			t.Errorf("a message has %d bytes, the transport takes %d", size, c.maxMessage)
		}
	}
	if got := settleAll(t, q, 20); len(got) != 20 {
		t.Errorf("%d jobs came, want 20", len(got))
	}
	sizes = nil
	var resource []byte
	for _, j := range jobs[:8] {
		resource = append(resource, j.Payload...)
	}
	for name, j := range map[string]queue.Job{
		"payload":  {Provider: "stripe", EventID: "a", Payload: make([]byte, q.Claims().MaxPayload+1)},
		"resource": {Provider: "stripe", EventID: "b", Resource: string(resource)},
	} {
		if err := q.Enqueue(t.Context(), job("fits"), j); !errors.Is(err, queue.ErrTooLarge) || len(sizes) > 0 {
			t.Errorf("a %s that is too large: got error %v and messages of %d, want %v and none", name, err, sizes, queue.ErrTooLarge)
		}
	}
}

// TestClaims: of both, the weaker.
func TestClaims(t *testing.T) {
	p := newPlace(t)
	q := open(t, inbox.Options{Transport: p.carrier(t), Store: p.store(t, time.Minute)})
	store := q.Store().Claims()
	got := q.Claims()
	if got.Durability != store.Durability || !got.Debounce || got.DedupWindow != store.DedupWindow || got.DelayAccuracy < store.DelayAccuracy || !got.Unordered {
		t.Errorf("claims: got %+v, want those of the store %+v", got, store)
	}
	if want := "files of the test, " + store.Version; got.Version != want {
		t.Errorf("version: got %q, want %q", got.Version, want)
	}
	if diff := cmp.Diff([]string{store.Settings["synchronous"], store.Settings["sync"]}, []string{got.Settings["store.synchronous"], got.Settings["sync"]}); diff != "" {
		t.Errorf("settings of both (-want +got):\n%s", diff)
	}
	silent := struct{ inbox.Transport }{p.carrier(t)}
	if got := open(t, inbox.Options{Transport: silent, Store: p.store(t, time.Minute)}).Claims().Durability; got != queue.DurabilityNone {
		t.Errorf("a transport that promises nothing: got the claim %q, want %q", got, queue.DurabilityNone)
	}
}

// TestBacklog: while the store takes nothing, what waits in the transport shows in the depth.
func TestBacklog(t *testing.T) {
	p := newPlace(t)
	store := &hookedStore{Queue: p.store(t, time.Minute)}
	store.enqueue = func(context.Context, ...queue.Job) error { return errors.New("full") }
	q := open(t, inbox.Options{Transport: p.carrier(t), Store: store})
	for _, id := range ids("stuck", 5) {
		enqueue(t, q, job(id))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	if d, err := q.Depth(ctx); err != nil || d.Waiting != 5 {
		t.Errorf("depth: got %+v, error %v; want 5 that wait", d, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	p := newPlace(t)
	small := p.watch(t)
	small.maxMessage = 100
	store := p.store(t, 0)
	defer func() { _ = store.Close(t.Context()) }()
	for name, o := range map[string]inbox.Options{
		"no transport":   {Store: store},
		"no store":       {Transport: small},
		"small messages": {Transport: small, Store: store},
		"negative":       {Transport: small, Store: store, Batch: -1},
	} {
		if _, err := inbox.Open(t.Context(), o); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
	if _, err := openPlace(t.Context(), filepath.Join(p.dir, "transport", "queue.db"), 0); err == nil {
		t.Errorf("a file in place of the directory: got no error")
	}
}
