package bench

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/bench/harness"
	"floodproof/chaos/cutfs"
	"floodproof/reference"
	"floodproof/reference/queue"
	kafkachild "floodproof/reference/queue/kafka/child"
	memorychild "floodproof/reference/queue/memory/child"
	natschild "floodproof/reference/queue/nats/child"
)

// parts are what a node of the pipeline is made of. A nil function leaves the part as it is.
type parts struct {
	queue     func(queue.Queue) queue.Queue
	handler   func(reference.Handler) reference.Handler
	providers func(map[string]reference.ProviderConfig) map[string]reference.ProviderConfig
}

// open opens the queue of a node.
func (p *Program) open(ctx context.Context, f nodeFlags) (queue.Queue, error) {
	store, err := harness.OpenBackend(ctx, f.backend, harness.BackendOptions{Dir: f.dir, Address: os.Getenv(harness.AddressVariable), Namespace: f.namespace, Lease: f.lease})
	if err != nil || p.parts.queue == nil {
		return store, err
	}
	return p.parts.queue(store), nil
}

// nodeFlags are what the processes of the pipeline are told. Secrets and the sink's address come from the environment.
type nodeFlags struct {
	name, backend, dir, addr string
	namespace                string
	lease                    time.Duration
	concurrency, attempts    int
	backoff, maxBackoff      time.Duration
	steps, rules             string
}

func (f *nodeFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&f.name, "name", "", "name in logs")
	fs.StringVar(&f.backend, "backend", harness.DefaultBackend, "queue backend")
	fs.StringVar(&f.dir, "dir", "", "directory of an embedded backend")
	fs.StringVar(&f.namespace, "namespace", "", "name of the queue on that server")
	fs.StringVar(&f.addr, "addr", "127.0.0.1:0", "address to listen on")
	fs.DurationVar(&f.lease, "lease", 30*time.Second, "how long a job belongs to a worker")
	fs.IntVar(&f.concurrency, "concurrency", 16, "jobs at once")
	fs.IntVar(&f.attempts, "attempts", 0, "leases before a job may become a dead letter")
	fs.DurationVar(&f.backoff, "backoff", 0, "wait after the first failure")
	fs.StringVar(&f.steps, "steps", "", "steps of an effect, PUT or POST and a name each, by commas")
	fs.StringVar(&f.rules, "rules", "", "lanes and debouncing, as JSON")
	fs.DurationVar(&f.maxBackoff, "max-backoff", 0, "longest wait after a failure")
}

// nodeVerb runs one process of the pipeline. It says one line on standard output when it is ready, and ends when it is asked to or when its standard input
// ends: then whoever started it is gone.
func nodeVerb(ctx context.Context, p *Program, args []string) (int, error) {
	if len(args) == 0 {
		return ExitUsage, usagef("roles: receiver, worker, guard, nats, kafka, memory, cutfs", "node: no role given")
	}
	switch args[0] {
	case "guard":
		return ExitPass, harness.Guard(p.Stdin)
	case "nats": // servers that are built in
		return natschild.Main(args[1:]), nil
	case "kafka":
		return kafkachild.Main(args[1:]), nil
	case "memory":
		return memorychild.Main(args[1:]), nil
	case "cutfs": // the file system whose power is cut
		return ExitPass, cutfs.ServeStdin(ctx)
	}
	var f nodeFlags
	fs := p.flags("node", "node ROLE [flags]")
	f.register(fs)
	if rest, err := parse(fs, args[1:]); err != nil || len(rest) > 0 {
		return ExitUsage, errors.Join(err, usagef("", "node: unexpected arguments %q", rest))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, p.Stdin)
		cancel(errors.New("whoever started this process is gone"))
	}()
	switch args[0] {
	case "receiver":
		return ExitPass, p.receiver(ctx, f)
	case "worker":
		return ExitPass, p.worker(ctx, f)
	default:
		return ExitUsage, usagef("roles: receiver, worker, guard, nats, kafka, memory, cutfs", "node: unknown role %q", args[0])
	}
}

func (p *Program) logger(f nodeFlags) *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", f.name)
}

// ready tells the supervisor that the process does its work from now on.
func (p *Program) ready() { _, _ = fmt.Fprintln(p.Stdout, "ready") }

// receiverMemory is what a receiver's garbage collector aims to stay below. Requests that stand in line when everything is overloaded hold their bodies, and the heap
// would grow to twice that before anybody collects.
const receiverMemory = 28 << 20

func (p *Program) receiver(ctx context.Context, f nodeFlags) (err error) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(receiverMemory))
	store, err := p.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	providers, err := harness.ReceiverProviders(os.Getenv)
	if err != nil {
		return err
	}
	if p.parts.providers != nil {
		providers = p.parts.providers(providers)
	}
	rules, err := harness.ParseRules(f.rules)
	if err != nil {
		return usagef("", "node receiver: --rules: %v", err)
	}
	cfg := reference.ReceiverConfig{Queue: store, Providers: providers, Lanes: rules.Lanes, Debounce: rules.Debounce, Logger: p.logger(f)}
	handler, err := reference.NewReceiver(cfg)
	if err != nil {
		return err
	}
	l, err := harness.ListenShared(ctx, f.addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", f.addr, err)
	}
	p.ready()
	return reference.Serve(ctx, l, handler, reference.ServeConfig{Logger: cfg.Logger})
}

func (p *Program) worker(ctx context.Context, f nodeFlags) (err error) {
	sinkURL := os.Getenv(harness.SinkVariable)
	if sinkURL == "" {
		return usagef("", "node worker: %s is not set", harness.SinkVariable)
	}
	store, err := p.open(ctx, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	handler, err := p.effect(sinkURL, f, store)
	if err != nil {
		return err
	}
	rules, err := harness.ParseRules(f.rules)
	if err != nil {
		return usagef("", "node worker: --rules: %v", err)
	}
	rules.Concurrency[""] = f.concurrency
	lanes, ctx := errgroup.WithContext(ctx)
	for lane, concurrency := range rules.Concurrency {
		w := &reference.Worker{
			Queue: store, Lane: lane, Handler: handler, Concurrency: concurrency,
			Backoff:     reference.Backoff{Base: f.backoff, Max: f.maxBackoff},
			MaxAttempts: f.attempts, Logger: p.logger(f), Seed: uint64(os.Getpid()),
		}
		lanes.Go(func() error { return w.Run(ctx) })
	}
	p.ready()
	return lanes.Wait()
}

// effect is what a worker does with a job.
func (p *Program) effect(sinkURL string, f nodeFlags, store queue.Queue) (h reference.Handler, err error) {
	sink, err := reference.NewSinkHandler(reference.SinkConfig{URL: sinkURL, MaxIdle: f.concurrency})
	if err != nil {
		return nil, err
	}
	h = sink
	if f.steps != "" {
		steps, err := reference.ParseSteps(f.steps)
		if err != nil {
			return nil, usagef("", "node worker: --steps: %v", err)
		}
		if h, err = reference.NewStepHandler(sink, store, steps); err != nil {
			return nil, err
		}
	}
	if p.parts.handler != nil {
		h = p.parts.handler(h)
	}
	return h, nil
}
