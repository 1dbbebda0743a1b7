package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"floodproof/reference"
	"floodproof/reference/dashboard"
	"floodproof/reference/metrics"
	"floodproof/reference/queue"
)

const serveSynopsis = "serve [--config FILE] [--check] [flags]"

// serveDoc is printed above the flags of `floodproof serve`.
const serveDoc = `
The reference pipeline in one process, for real use: a receiver, a worker for each lane, a dashboard and
/metrics. Everything that it keeps is in one directory; an event is acknowledged when it is on the disk.

Each setting below is a flag, a variable FLOODPROOF_<NAME> and a key of the YAML file; a flag decides over
a variable, and that over the file. Providers are those that have a secret. Secrets are never flags:
  FLOODPROOF_SECRET_<PROVIDER>            current secret, or secrets, one a line
  FLOODPROOF_SECRET_<PROVIDER>_PREVIOUS   those that are still good
  FLOODPROOF_SECRET_<PROVIDER>_FILE       a file that holds it, or secret_file in the YAML file
  FLOODPROOF_PASSWORD                     the dashboard's, or --password-file; needed beyond this machine

A YAML file can say more:
  format: 1
  downstream: http://127.0.0.1:9000
  providers: {shopify: {secret_file: /run/secrets/shopify, max_body: 1048576}}
  lanes: [{name: orders, provider: shopify, type: "orders/*", concurrency: 8}]
  hosts: [hooks.example.com]

Logs are JSON on standard error; they hold ids, never payloads or secrets. It ends at Ctrl-C or SIGTERM: it
takes no more, finishes what is in hand, and gives back what does not end in time.

exit status:
  0 ended as it was told, or --check found nothing wrong   1 it failed while it ran   2 usage or configuration

`

// serveVerb runs the reference pipeline.
func serveVerb(ctx context.Context, p *Program, args []string) (int, error) {
	sources := serveSources{flags: map[string]string{}, environ: os.Environ()}
	fs := p.flags("serve", serveSynopsis+"\n"+strings.TrimRight(serveDoc, "\n"))
	fs.StringVar(&sources.file, "config", "", "YAML file to read (also FLOODPROOF_CONFIG)")
	check := fs.Bool("check", false, "check the configuration, say what it comes to, and end")
	for _, s := range serveSettings(new(serveConfig)) {
		fs.Func(s.name, s.doc, func(text string) error { sources.flags[s.name] = text; return nil })
	}
	rest, err := parse(fs, args)
	if err == nil && len(rest) > 0 {
		err = usagef("usage: floodproof "+serveSynopsis, "serve: unexpected arguments %q", rest)
	}
	if err != nil {
		return ExitUsage, err
	}
	cfg, err := loadServe(sources)
	if err != nil {
		return ExitUsage, usagef("floodproof serve -h says how to set it", "%w", err)
	}
	if *check {
		return ExitPass, cfg.describe(p.Stdout)
	}
	return p.serve(ctx, cfg)
}

// serve runs what was configured until ctx ends.
func (p *Program) serve(ctx context.Context, cfg *serveConfig) (status int, err error) {
	log := serveLogger(p.Stderr, cfg.level)
	store, err := openServeStore(ctx, cfg)
	if err != nil {
		return ExitUsage, fmt.Errorf("serve: %w", err)
	}
	defer func() {
		if failure := store.Close(context.WithoutCancel(ctx)); failure != nil {
			status, err = ExitFail, errors.Join(err, fmt.Errorf("serve: %w", failure))
		}
	}()
	pipeline, err := assemble(cfg, store, log)
	if err != nil {
		return ExitUsage, err
	}
	receiver, board, err := listenServe(ctx, cfg)
	if err != nil {
		return ExitUsage, fmt.Errorf("serve: %w", err)
	}
	_, _ = fmt.Fprintf(p.Stdout, "receiver http://%s/webhooks/{provider}\ndashboard http://%s/\n", receiver.Addr(), board.Addr())
	log.InfoContext(ctx, "serving", "receiver", receiver.Addr().String(), "dashboard", board.Addr().String(), "dir", cfg.dir,
		"providers", cfg.providerNames(), "lanes", cfg.laneNames(), "password", cfg.password != "", "version", p.version())
	if err := pipeline.run(ctx, receiver, board); err != nil {
		return ExitFail, fmt.Errorf("serve: %w", err)
	}
	log.InfoContext(ctx, "stopped")
	return ExitPass, nil
}

// listenServe opens both addresses, or neither.
func listenServe(ctx context.Context, cfg *serveConfig) (receiver, board net.Listener, err error) {
	var listen net.ListenConfig
	if receiver, err = listen.Listen(ctx, "tcp", cfg.listen); err != nil {
		return nil, nil, err
	}
	if board, err = listen.Listen(ctx, "tcp", cfg.dashboard); err != nil {
		return nil, nil, errors.Join(err, receiver.Close())
	}
	return receiver, board, nil
}

// serveStore is a queue with all that a served pipeline needs.
type serveStore interface {
	queue.Queue
	dashboard.Queue
}

// servePipeline is the reference pipeline in one process.
type servePipeline struct {
	receiver  http.Handler
	workers   []*reference.Worker
	dashboard *dashboard.Dashboard
	sink      *reference.SinkHandler
	log       *slog.Logger
}

// assemble makes the parts, and finds what is wrong with the configuration that a part knows of itself. It starts nothing.
func assemble(cfg *serveConfig, store serveStore, log *slog.Logger) (*servePipeline, error) {
	receiver, err1 := reference.NewReceiver(reference.ReceiverConfig{
		Queue: store, Providers: cfg.receivers, Lanes: cfg.laneRules(), PublicURL: cfg.publicURL, Logger: log,
	})
	sink, err2 := reference.NewSinkHandler(reference.SinkConfig{URL: cfg.downstream, MaxIdle: cfg.totalConcurrency()})
	var handler reference.Handler = sink
	var err3 error
	if len(cfg.steps) > 0 && sink != nil {
		handler, err3 = reference.NewStepHandler(sink, store, cfg.steps)
	}
	p := &servePipeline{workers: cfg.makeWorkers(store, handler, log), sink: sink, log: log}
	shown, watched := make([]dashboard.Worker, 0, len(p.workers)), make([]metrics.Worker, 0, len(p.workers))
	for _, w := range p.workers {
		name := "worker-" + w.Lane
		if w.Lane == "" {
			name = "worker"
		}
		shown = append(shown, dashboard.Worker{Name: name, Lane: w.Lane, Counts: w.Counts})
		watched = append(watched, metrics.Worker{Name: name, Lane: w.Lane, Counts: w.Counts})
	}
	signals, err4 := metrics.New(metrics.Config{Queue: store, Workers: watched, Lanes: cfg.laneNames(), Providers: cfg.providerNames()})
	board := dashboard.Config{Queue: store, Workers: shown, Lanes: cfg.laneNames(), Password: cfg.password, Hosts: cfg.hosts, Logger: log}
	if signals != nil {
		p.receiver = signals.Middleware(receiver)
		board.Metrics = signals.Handler()
	}
	var err5 error
	p.dashboard, err5 = dashboard.New(board)
	return p, errors.Join(err1, err2, err3, err4, err5)
}

// run runs all parts until ctx ends or one of them fails, and waits for all of them. The receiver stops taking events at the same moment as the workers stop taking jobs: what
// was acknowledged is in the queue, where the next start finds it.
func (p *servePipeline) run(ctx context.Context, receiver, board net.Listener) error {
	defer p.sink.Close()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return reference.Serve(ctx, receiver, p.receiver, reference.ServeConfig{Logger: p.log}) })
	g.Go(func() error { return p.dashboard.Serve(ctx, board) })
	for _, w := range p.workers {
		g.Go(func() error { return w.Run(ctx) })
	}
	return g.Wait()
}

// serveLogger writes JSON. What a downstream says may repeat what it was sent, so its words are left out; the dashboard has them, behind its password.
func serveLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key != "reason" && a.Key != "err" {
			return a
		}
		text := a.Value.String()
		if before, _, ok := strings.Cut(text, `: "`); ok && strings.Contains(before, "downstream answered") {
			return slog.String(a.Key, before)
		}
		return a
	}}))
}

// makeWorkers makes a worker for the default lane and one for each other.
func (cfg *serveConfig) makeWorkers(q queue.Queue, h reference.Handler, log *slog.Logger) []*reference.Worker {
	var workers []*reference.Worker
	for _, lane := range append([]string{""}, cfg.laneNames()...) {
		workers = append(workers, &reference.Worker{
			Queue: q, Lane: lane, Handler: h, Concurrency: cfg.concurrencyOf(lane),
			MaxAttempts: cfg.maxAttempts, GiveUpAfter: cfg.giveUpAfter, Seed: uint64(os.Getpid()),
			Logger: log.With("lane", lane),
		})
	}
	return workers
}

// laneRules are the rules as the receiver takes them.
func (cfg *serveConfig) laneRules() []reference.LaneRule {
	var rules []reference.LaneRule
	for _, l := range cfg.lanes {
		rules = append(rules, reference.LaneRule{Provider: l.provider, Type: l.kind, Lane: l.name})
	}
	return rules
}

// laneNames are the named lanes, in order.
func (cfg *serveConfig) laneNames() []string {
	var names []string
	for _, l := range cfg.lanes {
		names = append(names, l.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// concurrencyOf is how many jobs of a lane are in hand at once.
func (cfg *serveConfig) concurrencyOf(lane string) int {
	for _, l := range cfg.lanes {
		if lane != "" && l.name == lane && l.concurrency > 0 {
			return l.concurrency
		}
	}
	return cfg.concurrency
}

func (cfg *serveConfig) totalConcurrency() int {
	total := cfg.concurrency
	for _, name := range cfg.laneNames() {
		total += cfg.concurrencyOf(name)
	}
	return max(0, total)
}
