package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"floodproof/reference"
	"floodproof/reference/alert"
	"floodproof/reference/dashboard"
	"floodproof/reference/metrics"
)

const serveSynopsis = "serve [--config FILE] [--check | --example] [flags]"

// serveDoc is printed above the flags of `floodproof serve`.
const serveDoc = `
The reference pipeline in one process, for real use: a receiver, a worker for
each lane, a dashboard and /metrics. An event is acknowledged when it is safe:
on the disk, or on that of the queue's server.

The least that it needs is a secret and something to call:
  FLOODPROOF_SECRET_STRIPE=whsec_... \
    floodproof serve --downstream http://127.0.0.1:9000

Each setting below is a flag, a variable FLOODPROOF_<NAME> and a key of the
YAML file; a flag decides over a variable, and that over the file. --example
prints a file with all of them, and says more. Providers are those that have a
secret. Secrets are never flags:
  FLOODPROOF_SECRET_<PROVIDER>
      the current secret, or secrets, one a line
  FLOODPROOF_SECRET_<PROVIDER>_PREVIOUS
      those that are still good
  FLOODPROOF_SECRET_<PROVIDER>_FILE
      a file that holds it, or secret_file in the YAML file
  FLOODPROOF_PASSWORD
      the dashboard's; needed beyond this machine
  FLOODPROOF_QUEUE_ADDRESS
      where the server of another backend is
  FLOODPROOF_ALERT_SLACK, FLOODPROOF_ALERT_WEBHOOK
      URLs that are told of dead letters
  SENTRY_DSN, SENTRY_ENVIRONMENT
      those of a Sentry project that is told of dead letters

Logs are JSON on standard error; they hold ids, never payloads or secrets. It
ends at Ctrl-C or SIGTERM: it takes no more, finishes what is in hand, and gives
back what does not end in time. After a kill, what was in hand comes again when
its lease is over.

exit status:
  0 ended as it was told, or nothing was wrong   1 failed while it ran
  2 usage or configuration

`

//go:embed serve.example.yaml
var serveExample string

// serveVerb runs the reference pipeline.
func serveVerb(ctx context.Context, p *Program, args []string) (int, error) {
	sources := serveSources{flags: map[string]string{}, environ: os.Environ()}
	fs := p.flags("serve", serveSynopsis)
	fs.StringVar(&sources.file, "config", "", "YAML `file` to read (also FLOODPROOF_CONFIG)")
	check := fs.Bool("check", false, "check the configuration, say what it comes to, and end")
	example := fs.Bool("example", false, "print a YAML file with all settings, and end")
	var groups [][]string
	for _, g := range serveGroups(new(serveConfig)) {
		group := []string{g.title}
		for _, s := range g.settings {
			fs.Func(s.name, s.doc, func(text string) error { sources.flags[s.name] = text; return nil })
			group = append(group, s.name)
		}
		groups = append(groups, group)
	}
	p.help(fs, serveSynopsis+"\n"+strings.TrimRight(serveDoc, "\n"), groups...)
	rest, err := parse(fs, args)
	if err == nil && len(rest) > 0 {
		err = usagef("usage: floodproof "+serveSynopsis, "serve: unexpected arguments %q", rest)
	}
	if err != nil {
		return ExitUsage, err
	}
	if *example {
		_, err := io.WriteString(p.Stdout, serveExample)
		return ExitPass, err
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
	cfg.release = p.version()
	pipeline, err := assemble(cfg, store, log)
	if err == nil {
		err = cfg.canDebounce(store)
	}
	if err != nil {
		return ExitUsage, err
	}
	receiver, board, err := listenServe(ctx, cfg)
	if err != nil {
		return ExitUsage, usagef("--listen and --dashboard choose other addresses", "serve: %w", err)
	}
	tellDamaged(store, pipeline.alerter, log)
	cfg.announce(ctx, p.Stdout, log, serveStarted{store.Claims(), sharesLimits(store), receiver.Addr(), board.Addr()})
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

// servePipeline is the reference pipeline in one process.
type servePipeline struct {
	receiver  http.Handler
	workers   []*reference.Worker
	dashboard *dashboard.Dashboard
	sink      *reference.SinkHandler
	alerter   *alert.Alerter
	refusals  *refusals
	log       *slog.Logger
}

// assemble makes the parts, and finds what is wrong with the configuration that a part knows of itself. It starts nothing.
func assemble(cfg *serveConfig, store boardStore, log *slog.Logger) (*servePipeline, error) {
	alerter, err6 := cfg.alerts.open(cfg.release, log)
	refusals := newRefusals(cfg.providerNames())
	receiver, err1 := reference.NewReceiver(reference.ReceiverConfig{
		Queue: alertingQueue{store, alerter}, Providers: cfg.receivers, Lanes: cfg.laneRules(), Debounce: cfg.debounce, Senders: cfg.senders.limit(), PublicURL: cfg.publicURL,
		Logger: slog.New(refusals.handler(log.Handler())),
	})
	sink, err2 := reference.NewSinkHandler(reference.SinkConfig{URL: cfg.downstream, MaxIdle: cfg.totalConcurrency()})
	var handler reference.Handler = sink
	var err3 error
	if len(cfg.steps) > 0 && sink != nil {
		handler, err3 = reference.NewStepHandler(sink, store, cfg.steps)
	}
	workers, err7 := cfg.makeWorkers(store, handler, log)
	p := &servePipeline{workers: workers, sink: sink, alerter: alerter, refusals: refusals, log: log}
	shown, watched := make([]dashboard.Worker, 0, len(p.workers)), make([]metrics.Worker, 0, len(p.workers))
	for _, w := range p.workers {
		w.OnDead = onDead(alerter)
		name := "worker-" + w.Lane
		if w.Lane == "" {
			name = "worker"
		}
		shown = append(shown, dashboard.Worker{Name: name, Lane: w.Lane, Counts: w.Counts})
		watched = append(watched, metrics.Worker{Name: name, Lane: w.Lane, Counts: w.Counts})
	}
	signals, err4 := metrics.New(metrics.Config{Queue: store, Workers: watched, Lanes: cfg.laneNames(), Providers: cfg.providerNames()})
	board := dashboard.Config{Queue: store, Workers: shown, Lanes: cfg.laneNames(), Limits: cfg.limits(), Password: cfg.password, Hosts: cfg.hosts, Logger: log}
	if signals != nil {
		p.receiver = signals.Middleware(receiver)
		board.Metrics = signals.Handler()
	}
	var err5 error
	p.dashboard, err5 = dashboard.New(board)
	return p, errors.Join(err1, err2, err3, err4, err5, err6, err7)
}

// run runs all parts until ctx ends or one of them fails, and waits for all of them. The receiver stops taking events at the same moment as the workers stop taking jobs: what
// was acknowledged is in the queue, where the next start finds it.
func (p *servePipeline) run(ctx context.Context, receiver, board net.Listener) error {
	defer p.sink.Close()
	defer p.refusals.flush(context.WithoutCancel(ctx))
	// Who tells of dead letters ends before who passes that on.
	alerting, stop := context.WithCancel(context.WithoutCancel(ctx))
	alerted := make(chan error, 1)
	go func() { alerted <- p.alerter.Run(alerting) }()
	defer func() {
		stop()
		<-alerted // which is nil
	}()
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
