package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue"
)

// The defaults of Options.
const (
	DefaultURL       = "nats://127.0.0.1:4222"
	DefaultNamespace = "floodproof"
	DefaultLease     = 30 * time.Second
)

const (
	// envelope is what a message may need besides a payload: the other fields of the job and the headers.
	envelope = 32 << 10
	// delayAccuracy covers the server's timer, the look at the state and the write of the lease.
	delayAccuracy = 250 * time.Millisecond
)

// Options are how a queue is opened. The zero value is a durable queue on a server of this machine.
type Options struct {
	// URL is where the server is, several separated by commas; "" is DefaultURL.
	URL string
	// Namespace keeps queues on one server apart: letters, digits, - and _, at most 64; "" is DefaultNamespace.
	Namespace string
	// Lease is how long a received job belongs to its receiver; 0 is DefaultLease.
	Lease time.Duration
	// Replicas is how many servers of a cluster keep the stream, if it is made; 0 is 1.
	Replicas int
	// MaxPayload is the largest payload in bytes that Enqueue takes; 0 is as much as the server's max_payload leaves room for, and more than that is that.
	MaxPayload int
	// Now is this machine's clock, which is compared with the server's; nil is time.Now.
	Now func() time.Time
	// Client are options of the connection, for credentials and TLS.
	Client []client.Option
}

func (o Options) withDefaults() (Options, error) {
	o.URL = cmp.Or(o.URL, DefaultURL)
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	o.Replicas = cmp.Or(o.Replicas, 1)
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(o.Namespace):
		return o, fmt.Errorf("namespace is %q: use up to 64 letters, digits, - and _", o.Namespace)
	case o.Lease < 10*time.Millisecond:
		return o, fmt.Errorf("lease is %v: use at least 10ms", o.Lease)
	case o.Replicas < 1 || o.Replicas > maxReplicas:
		return o, fmt.Errorf("replicas is %d: use 1 to %d", o.Replicas, maxReplicas)
	case o.MaxPayload < 0:
		return o, fmt.Errorf("largest payload is %d bytes: use at least 1", o.MaxPayload)
	}
	return o, nil
}

// Queue is a durable queue in one JetStream stream. Any number of processes may open the same namespace. It implements queue.Queue and all of the optional interfaces of
// package queue; all methods may be called concurrently.
type Queue struct {
	opts     Options
	claims   queue.Claims
	link     *link
	subjects subjects
	clock    *clock
	writer   *writer
	told     queue.Teller

	mu     sync.Mutex
	lanes  map[string]*lane
	out    map[outKey]*held // the leases that this handle gave out
	swept  time.Time
	closed bool

	calls      sync.WaitGroup // calls under way, and what they left behind
	keeping    sync.WaitGroup // the clock
	closing    context.Context
	startClose context.CancelCauseFunc
	done       chan struct{} // closed when nothing is left
}

// Open connects to the server, and makes the stream of the namespace if it is missing. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (*Queue, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	l, err := dial(ctx, opts.URL, "FP_"+opts.Namespace, opts.Client)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	q := &Queue{
		opts: opts, link: l, subjects: newSubjects(opts.Namespace), clock: &clock{local: opts.Now},
		lanes: make(map[string]*lane), out: make(map[outKey]*held), done: make(chan struct{}),
	}
	if err := q.prepare(ctx); err != nil {
		l.close()
		return nil, fmt.Errorf("open the queue %s: %w", opts.Namespace, err)
	}
	q.closing, q.startClose = context.WithCancelCause(context.Background())
	q.writer = newWriter(l, q.subjects, q.clock)
	go q.writer.run()
	q.keeping.Go(func() { q.clock.keep(q.closing, l) })
	return q, nil
}

// prepare makes the stream, sets the clock and reads what the server is set to.
func (q *Queue) prepare(ctx context.Context) error {
	config, err := q.openStream(ctx)
	if err != nil {
		return err
	}
	if config.Replicas > 1 {
		if err := q.link.mark(ctx, q.subjects.mark()); err != nil {
			return fmt.Errorf("mark the stream: %w", err)
		}
	}
	if err := q.clock.set(ctx, q.link); err != nil {
		return fmt.Errorf("compare the clocks: %w", err)
	}
	room := int(q.link.conn.MaxPayload()) - envelope
	if room < 1 {
		return fmt.Errorf("the server's max_payload is %d bytes: set it to at least %d", q.link.conn.MaxPayload(), envelope+1)
	}
	if q.opts.MaxPayload == 0 || q.opts.MaxPayload > room {
		q.opts.MaxPayload = room
	}
	q.claims = q.makeClaims(ctx, config)
	return nil
}

// streamConfig is the part of a stream's configuration that the queue relies on
// (https://github.com/nats-io/nats-server/blob/v2.15.3/server/stream.go, StreamConfig).
type streamConfig struct {
	Name        string   `json:"name"`
	Subjects    []string `json:"subjects"`
	Retention   string   `json:"retention"`
	Storage     string   `json:"storage"`
	Replicas    int      `json:"num_replicas"`
	Discard     string   `json:"discard"`
	MaxMsgs     int64    `json:"max_msgs"`
	MaxBytes    int64    `json:"max_bytes"`
	MaxAge      int64    `json:"max_age"`
	MaxMsgSize  int      `json:"max_msg_size"`
	MaxPer      int64    `json:"max_msgs_per_subject"`
	AllowDirect bool     `json:"allow_direct"`
	AllowAtomic bool     `json:"allow_atomic"`
	PersistMode string   `json:"persist_mode,omitempty"`
}

// openStream finds the stream, or makes it. Of each subject the last message stays, and nothing else ever goes: there is no age and no size at which the
// server would drop a job that nobody has seen or a dead letter. "discard new" refuses what a full disk or account has no room for.
func (q *Queue) openStream(ctx context.Context) (streamConfig, error) {
	want := streamConfig{
		Name: q.link.stream, Subjects: []string{q.subjects.all()}, Retention: "limits", Storage: "file", Replicas: q.opts.Replicas, Discard: "new",
		MaxMsgs: -1, MaxBytes: -1, MaxMsgSize: -1, MaxPer: 1, AllowDirect: true, AllowAtomic: true,
	}
	var info struct {
		Config streamConfig `json:"config"`
	}
	err := q.link.ask(ctx, "$JS.API.STREAM.INFO."+want.Name, struct{}{}, &info)
	if hasCode(err, codeStreamMissing) {
		err = q.link.ask(ctx, "$JS.API.STREAM.CREATE."+want.Name, want, &info)
	}
	if errors.Is(err, client.ErrNoResponders) {
		return info.Config, errors.New("the server has no JetStream: start it with -js")
	}
	if err != nil {
		return info.Config, fmt.Errorf("make the stream %s: %w", want.Name, err)
	}
	got := info.Config
	switch {
	case !got.AllowAtomic:
		return got, fmt.Errorf("the stream %s allows no atomic batches: the queue needs nats-server 2.12 and allow_atomic", want.Name)
	case !got.AllowDirect || got.MaxPer != 1 || got.MaxMsgs > 0 || got.MaxBytes > 0 || got.MaxAge > 0 || got.Retention != "limits" || got.Discard != "new":
		return got, fmt.Errorf("the stream %s was changed: the queue needs allow_direct, one message per subject, retention limits, discard new, and no other limit", want.Name)
	}
	return got, nil
}

// begin counts a call, so that Close waits for it. Each success needs one q.calls.Done.
func (q *Queue) begin() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return queue.ErrClosed
	}
	q.calls.Add(1)
	return nil
}

// Close implements queue.Queue. While the server does not answer, the calls under way have to give up first: Close then returns with its context, and the queue
// closes itself as soon as they have.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	first := !q.closed
	q.closed = true
	q.mu.Unlock()
	if first {
		q.startClose(queue.ErrClosed)
		go q.shutDown()
	}
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close the queue: %w", ctx.Err())
	}
}

func (q *Queue) shutDown() {
	defer close(q.done)
	q.calls.Wait()
	q.keeping.Wait()
	q.writer.close()
	q.link.close()
}

// Claims is what this queue promises, by the settings that the server said are in force when the queue was opened.
func (q *Queue) Claims() queue.Claims {
	claims := q.claims
	claims.Settings = maps.Clone(claims.Settings)
	return claims
}

// TellDead implements queue.DeadTeller.
func (q *Queue) TellDead(fn func(queue.DeadLetter)) { q.told.TellDead(fn) }

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
	_ queue.DeadTeller = (*Queue)(nil)
)
