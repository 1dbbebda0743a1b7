package node

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

	"floodproof/bench/backends"
	"floodproof/reference"
	"floodproof/reference/queue"
)

// Process is one process of the pipeline, a receiver or a worker. It says one line on standard output when it is ready, and ends when it is asked to or when its
// standard input ends: then whoever started it is gone.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Parts replace some of what it is made of, for a pipeline that is broken on purpose.
	Parts Parts
}

// Parts are what a process of the pipeline is made of. A nil function leaves the part as it is, so does the zero value with all of them.
type Parts struct {
	Queue     func(queue.Queue) queue.Queue
	Handler   func(reference.Handler) reference.Handler
	Providers func(map[string]reference.ProviderConfig) map[string]reference.ProviderConfig
	Lane      func(LaneSettings) LaneSettings
}

// settings are what a process is told. Secrets and the addresses of sink and queue come from the environment.
type settings struct {
	name, backend, dir, addr string
	namespace                string
	lease                    time.Duration
	concurrency, attempts    int
	backoff, maxBackoff      time.Duration
	giveUpAfter              time.Duration
	steps, rules             string
	// controls are what the supervisor can do to the process.
	controls *Controls
}

func (s *settings) register(fs *flag.FlagSet) {
	fs.StringVar(&s.name, "name", "", "name in logs")
	fs.StringVar(&s.backend, "backend", backends.Default, "queue backend")
	fs.StringVar(&s.dir, "dir", "", "directory of an embedded backend")
	fs.StringVar(&s.namespace, "namespace", "", "name of the queue on that server")
	fs.StringVar(&s.addr, "addr", "127.0.0.1:0", "address to listen on")
	fs.DurationVar(&s.lease, "lease", 30*time.Second, "how long a job belongs to a worker")
	fs.IntVar(&s.concurrency, "concurrency", 16, "jobs at once")
	fs.IntVar(&s.attempts, "attempts", 0, "leases before a job may become a dead letter")
	fs.DurationVar(&s.giveUpAfter, "give-up-after", reference.DefaultGiveUpAfter, "age that it must have besides, 0 for any")
	fs.DurationVar(&s.backoff, "backoff", 0, "wait after the first failure")
	fs.StringVar(&s.steps, "steps", "", "steps of an effect, PUT or POST and a name each, by commas")
	fs.StringVar(&s.rules, "rules", "", "lanes and debouncing, as JSON")
	fs.DurationVar(&s.maxBackoff, "max-backoff", 0, "longest wait after a failure")
}

// Roles are what a [Process] can be.
func Roles() []string { return []string{"receiver", "worker"} }

// Run plays a role until ctx ends or nobody holds the process's standard input any more. It returns nil after an orderly end, and errors of its arguments and of what it
// could not open or close.
func (p *Process) Run(ctx context.Context, role string, args []string) error {
	var s settings
	fs := flag.NewFlagSet("node "+role, flag.ContinueOnError)
	fs.SetOutput(p.Stderr)
	s.register(fs)
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("node %s: %w", role, err)
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("node %s: unexpected arguments %q", role, fs.Args())
	}
	play := map[string]func(context.Context, settings) error{"receiver": p.receiver, "worker": p.worker}[role]
	if play == nil {
		return fmt.Errorf("unknown role %q: a process of the pipeline is one of %q", role, Roles())
	}
	s.controls = NewControls(p.Stdout)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		s.controls.Obey(p.Stdin)
		cancel(errors.New("whoever started this process is gone"))
	}()
	return play(ctx, s)
}

// open opens the queue.
func (p *Process) open(ctx context.Context, s settings) (queue.Queue, error) {
	store, err := backends.Open(ctx, s.backend, backends.Options{Dir: s.dir, Address: os.Getenv(AddressVariable), Namespace: s.namespace, Lease: s.lease})
	if err != nil || p.Parts.Queue == nil {
		return store, err
	}
	return p.Parts.Queue(store), nil
}

func (p *Process) logger(s settings) *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})).With("node", s.name)
}

// ready tells the supervisor that the process does its work from now on.
func (p *Process) ready() {
	ForgetStart()
	_, _ = fmt.Fprintln(p.Stdout, "ready")
}

// receiverMemory is what a receiver's garbage collector aims to stay below. Requests that stand in line when everything is overloaded hold their bodies, and the heap
// would grow to twice that before anybody collects.
const receiverMemory = 24 << 20

func (p *Process) receiver(ctx context.Context, s settings) (err error) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(receiverMemory))
	store, err := p.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	providers, err := Providers(os.Getenv)
	if err != nil {
		return err
	}
	if p.Parts.Providers != nil {
		providers = p.Parts.Providers(providers)
	}
	rules, err := ParseRules(s.rules)
	if err != nil {
		return fmt.Errorf("node receiver: --rules: %w", err)
	}
	cfg := reference.ReceiverConfig{Queue: store, Providers: providers, Lanes: rules.Lanes, Debounce: rules.Debounce, Logger: p.logger(s), Crash: s.controls.Crash, Now: s.controls.Now}
	handler, err := reference.NewReceiver(cfg)
	if err != nil {
		return err
	}
	l, err := ListenShared(ctx, s.addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.addr, err)
	}
	p.ready()
	return reference.Serve(ctx, l, handler, reference.ServeConfig{Logger: cfg.Logger})
}

func (p *Process) worker(ctx context.Context, s settings) (err error) {
	sinkURL := os.Getenv(SinkVariable)
	if sinkURL == "" {
		return fmt.Errorf("node worker: %s is not set", SinkVariable)
	}
	store, err := p.open(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close(context.WithoutCancel(ctx))) }()
	handler, err := p.effect(sinkURL, s, store)
	if err != nil {
		return err
	}
	rules, err := ParseRules(s.rules)
	if err != nil {
		return fmt.Errorf("node worker: --rules: %w", err)
	}
	rules.Concurrency[""] = s.concurrency
	lanes, ctx := errgroup.WithContext(ctx)
	for lane := range rules.Concurrency {
		w, err := p.laneWorker(lane, rules, s, store, handler)
		if err != nil {
			return err
		}
		lanes.Go(func() error { return w.Run(ctx) })
	}
	p.ready()
	return lanes.Wait()
}

// effect is what a worker does with a job.
func (p *Process) effect(sinkURL string, s settings, store queue.Queue) (h reference.Handler, err error) {
	sink, err := reference.NewSinkHandler(reference.SinkConfig{URL: sinkURL, MaxIdle: s.concurrency})
	if err != nil {
		return nil, err
	}
	h = sink
	if s.steps != "" {
		steps, err := reference.ParseSteps(s.steps)
		if err != nil {
			return nil, fmt.Errorf("node worker: --steps: %w", err)
		}
		if h, err = reference.NewStepHandler(sink, store, steps); err != nil {
			return nil, err
		}
	}
	if p.Parts.Handler != nil {
		h = p.Parts.Handler(h)
	}
	return h, nil
}
