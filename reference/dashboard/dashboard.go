package dashboard

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// Queue is what a dashboard must be able to ask. What else it offers depends on what the queue is besides: a [queue.Redriver], a [queue.Dropper], a
// [queue.Historian].
type Queue interface {
	queue.Depther
	queue.DeadLister
}

// Worker is one worker of this process.
type Worker struct {
	// Name tells the workers of a process apart; Lane is the lane that it works on, "" the default one.
	Name, Lane string
	// Counts are those of [reference.Worker.Counts].
	Counts func() reference.WorkerCounts
}

// The defaults and bounds of a Config.
const (
	DefaultInterval = time.Second
	// MinPassword is the least number of bytes of a password.
	MinPassword = 12
)

// Config is what a Dashboard needs. Queue must be set; every other field has a working zero value.
type Config struct {
	Queue Queue
	// Workers are those of this process.
	Workers []Worker
	// Lanes are shown even while they never had a job; the default one always is.
	Lanes []string
	// Limits are the rates that lanes keep to, by lane, "" the default one. Those of the same name are shared. Without any there is nothing about them on the page.
	Limits map[string]queue.Limit
	// Password is asked for on every request; "" on none, and then only this machine is served.
	Password reference.Secret
	// Hosts are the names, without port, under which browsers may reach the dashboard, besides localhost and plain addresses.
	Hosts []string
	// Metrics is served under /metrics, behind the same password. Nil: nothing is.
	Metrics http.Handler
	// Interval is how often the queue is asked, once for all who look. 0: DefaultInterval.
	Interval time.Duration
	// Logger hears of wrong passwords, of what somebody gave back or dropped, and of payloads that were shown; never of their content. Nil: nothing is logged.
	Logger *slog.Logger
}

// Dashboard is an http.Handler with its own server. It is safe for concurrent use. Its numbers are kept up to date while Serve runs.
type Dashboard struct {
	cfg     Config
	log     *slog.Logger
	guard   *guard
	watch   *watch
	handler http.Handler
	pages   *template.Template
}

//go:embed pages.html.tmpl style.css live.js
var files embed.FS

// New checks the configuration. All that is wrong is reported at once.
func New(cfg Config) (*Dashboard, error) {
	var faults []error
	if cfg.Queue == nil {
		faults = append(faults, errors.New("set Queue: there is nothing to show"))
	}
	if cfg.Password != "" && len(cfg.Password) < MinPassword {
		faults = append(faults, fmt.Errorf("the password has %d bytes: use %d or more", len(cfg.Password), MinPassword))
	}
	if cfg.Interval < 0 {
		faults = append(faults, fmt.Errorf("the interval is %v: use more than 0, or 0 for %v", cfg.Interval, DefaultInterval))
	}
	pages, err := template.New("").Funcs(template.FuncMap{"plain": plain}).ParseFS(files, "pages.html.tmpl")
	if err := errors.Join(append(faults, err)...); err != nil {
		return nil, fmt.Errorf("configure dashboard: %w", err)
	}
	if cfg.Interval == 0 {
		cfg.Interval = DefaultInterval
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: crypto/rand crashes the program instead
	d := &Dashboard{cfg: cfg, log: cfg.Logger, pages: pages, watch: newWatch(cfg), guard: newGuard(cfg, key)}
	d.cfg.Password = "" // It lives in the guard from here on, as a digest.
	d.handler = d.guard.protect(d.routes())
	return d, nil
}

func (d *Dashboard) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", d.serveOverview)
	mux.HandleFunc("GET /stream", d.serveStream)
	mux.HandleFunc("GET /letters", d.serveLetters)
	mux.HandleFunc("POST /letters/retry", d.serveRetry)
	mux.HandleFunc("POST /letters/drop", d.serveDrop)
	mux.HandleFunc("GET /event", d.serveEvent)
	mux.HandleFunc("GET /hand", d.serveHand)
	mux.HandleFunc("GET /style.css", asset("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /live.js", asset("live.js", "text/javascript; charset=utf-8"))
	if d.cfg.Metrics != nil {
		mux.Handle("GET /metrics", d.cfg.Metrics)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		d.refuse(w, r, http.StatusNotFound, "There is no such page.")
	})
	return mux
}

func asset(name, kind string) http.HandlerFunc {
	text, _ := files.ReadFile(name) // It is embedded.
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text) // Whoever asked is gone if this fails.
	}
}

// ServeHTTP answers one request.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.handler.ServeHTTP(w, r) }

// Serve answers the connections of a listener, which it owns and closes, and keeps the numbers up to date, until ctx ends; it then ends the streams, lets other requests
// finish, and returns nil. It refuses a listener that others than this machine can reach if there is no password.
func (d *Dashboard) Serve(ctx context.Context, ln net.Listener) error {
	if err := CheckAddress(ln.Addr().String(), d.guard.locked); err != nil {
		return errors.Join(fmt.Errorf("serve dashboard: %w", err), ln.Close())
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { d.watch.run(ctx); return nil })
	g.Go(func() error {
		return reference.Serve(ctx, ln, d, reference.ServeConfig{Logger: d.log, WriteTimeout: actLimit + 10*time.Second})
	})
	if err := g.Wait(); err != nil {
		return fmt.Errorf("serve dashboard: %w", err)
	}
	return nil
}

// CheckAddress reports whether a dashboard may listen on host:port: without a password on this machine alone.
func CheckAddress(addr string, password bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: write host:port, such as 127.0.0.1:8081", addr)
	}
	if ip := net.ParseIP(host); password || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("address %s can be reached from other machines: set a password, or listen on 127.0.0.1", addr)
}
