package kafka

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory/front"
)

// The defaults of Options.
const (
	DefaultBrokers   = "127.0.0.1:9092"
	DefaultNamespace = "floodproof"
	DefaultLease     = 30 * time.Second
)

// MinRetention is the shortest Options.Retention.
const MinRetention = front.MinRetention

const (
	// maxRecord is the largest record; the topic's max.message.bytes leaves room for it.
	maxRecord = 16 << 20
	// maxCall is the most that one Enqueue may bring, maxFrame what calls are put together up to, maxPayload the largest payload, all in bytes.
	maxCall, maxFrame, maxPayload = 12 << 20, 1 << 20, 4 << 20
	// deliverWithin is how long a frame is tried to be written.
	deliverWithin = 10 * time.Second
	// dialWithin bounds the making of a connection.
	dialWithin = 10 * time.Second
	// lookAgain is how often a receiver that waits asks whether the log can still be read.
	lookAgain = time.Second
	// waiting is how many calls may wait for the writer before more have to.
	waiting = 1024
	// delayAccuracy covers a claim's way into the log and back.
	delayAccuracy = 250 * time.Millisecond
)

// Options are how a queue is opened. The zero value is a queue on a broker of this machine.
type Options struct {
	// Brokers are addresses of some brokers as host:port, separated by commas; "" is DefaultBrokers. The only broker of a cluster is always reached there, wherever it says it is.
	Brokers string
	// Namespace keeps queues of one cluster apart, and is part of the topic's name: letters, digits, - and _, at most 64; "" is DefaultNamespace.
	Namespace string
	// Lease is how long a received job belongs to its receiver; 0 is DefaultLease.
	Lease time.Duration
	// Retention is how long a finished event is kept, with its payload and its history, from when it was done or dropped; it is then known no more, and a delivery of it would be a
	// new event. 0 keeps all for as long as no other handle says otherwise; any other is MinRetention or more. Dead letters, and what is not finished, are never forgotten. All handles
	// of a namespace should say the same: the shortest of their times counts.
	Retention time.Duration
	// Now is this machine's clock; nil is time.Now. It counts where the broker does not stamp records itself.
	Now func() time.Time
	// Client are options of the connection, for credentials and TLS.
	Client []kgo.Opt
}

func (o Options) withDefaults() (Options, error) {
	o.Brokers = cmp.Or(o.Brokers, DefaultBrokers)
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(o.Namespace):
		return o, fmt.Errorf("namespace is %q: use up to 64 letters, digits, - and _", o.Namespace)
	case o.Lease < 10*time.Millisecond:
		return o, fmt.Errorf("lease is %v: use at least 10ms", o.Lease)
	case o.Retention != 0 && o.Retention < MinRetention:
		return o, fmt.Errorf("retention is %v: use 0 or at least %v", o.Retention, MinRetention)
	}
	return o, nil
}

// Queue is a handle of a queue in one topic. It implements queue.Queue and every optional interface but queue.Limiter, and queue.DeadTeller, for it makes no dead letter by itself: a
// log with a damaged record is not read on. All methods may be called concurrently, and any number of processes may open the same namespace.
type Queue struct {
	*front.Queue

	claims queue.Claims
}

// Open connects to the cluster, and makes the topic of the namespace if it is missing. The context bounds the opening alone.
func Open(ctx context.Context, opts Options) (*Queue, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	client := append([]kgo.Opt{kgo.SeedBrokers(strings.Split(opts.Brokers, ",")...), kgo.RetryBackoffFn(backoff), kgo.MetadataMinAge(100 * time.Millisecond)}, opts.Client...)
	direct, err := straight(ctx, &opts, client)
	if err != nil {
		return nil, fmt.Errorf("open the queue %s: %w", opts.Namespace, err)
	}
	client = append(client, direct...)
	// Note: the broker's own protection against records that are sent twice lasts as long as a producer's session. The frames' numbers last as long as the log, and
	// without it a frame can be given up.
	producer, err := kgo.NewClient(append(client[:len(client):len(client)], kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(1), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0),
		kgo.ProducerBatchMaxBytes(maxRecord), kgo.RecordDeliveryTimeout(deliverWithin))...)
	if err != nil {
		return nil, fmt.Errorf("open the queue: %w", err)
	}
	var writer [8]byte
	_, _ = rand.Read(writer[:]) // never fails
	e := &engine{
		topic: "floodproof." + opts.Namespace, options: client, producer: producer, writer: binary.BigEndian.Uint64(writer[:]), now: opts.Now, fold: newFold(),
		intake: make(chan *call, waiting), ended: make(chan struct{}), pending: make(map[int64][]*call), claims: make(map[string]chan struct{}),
	}
	claims, err := prepare(ctx, producer, e.topic)
	if err != nil {
		producer.Close()
		return nil, fmt.Errorf("open the queue %s: %w", opts.Namespace, err)
	}
	claims.DedupWindow = cmp.Or(opts.Retention, queue.Forever)
	go e.run()
	limits := front.Limits{Lease: opts.Lease, MaxPayload: maxPayload, MaxCall: maxCall, Retention: opts.Retention}
	return &Queue{Queue: front.New(e, limits), claims: claims}, nil
}

// straight makes all connections to the only broker of a cluster go where it was found. Kafka's clients connect to where a broker says it is, which is of no use behind a tunnel, a proxy,
// or the port of a container; with a single broker there is nothing to choose. Whoever gives options of the connection has chosen.
func straight(ctx context.Context, opts *Options, client []kgo.Opt) ([]kgo.Opt, error) {
	if strings.Contains(opts.Brokers, ",") || len(opts.Client) > 0 {
		return nil, nil
	}
	probe, err := kgo.NewClient(client...)
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	meta, err := kadm.NewClient(probe).BrokerMetadata(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the cluster: %w", err)
	}
	if len(meta.Brokers) != 1 {
		return nil, nil
	}
	dialer := net.Dialer{Timeout: dialWithin}
	return []kgo.Opt{kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, opts.Brokers)
	})}, nil
}

// backoff is short: what waits here is a caller.
func backoff(failures int) time.Duration {
	return min(20*time.Millisecond<<min(failures, 5), 500*time.Millisecond)
}

// Claims is what this queue promises, by the settings that were in force when it was opened.
func (q *Queue) Claims() queue.Claims {
	c := q.claims
	c.Settings = maps.Clone(c.Settings)
	return c
}

var (
	_ queue.Queue      = (*Queue)(nil)
	_ queue.Extender   = (*Queue)(nil)
	_ queue.Stepper    = (*Queue)(nil)
	_ queue.Depther    = (*Queue)(nil)
	_ queue.DeadLister = (*Queue)(nil)
	_ queue.Redriver   = (*Queue)(nil)
	_ queue.Dropper    = (*Queue)(nil)
	_ queue.Historian  = (*Queue)(nil)
	_ queue.Replayer   = (*Queue)(nil)
)

var errTopic = errors.New("the topic is not as the queue needs it")
