package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// DefaultLane is how the lane without a name is shown, Other everything that the configuration does not name.
const (
	DefaultLane = "default"
	Other       = "other"
)

// Config is what is watched. Every field may be left empty; what is not there has no signals.
type Config struct {
	// Queue is asked for its depth with every scrape.
	Queue queue.Depther
	// Workers are those of this process.
	Workers []Worker
	// Lanes are the named lanes; the default one is always among them. Providers are those that the receiver listens to.
	Lanes, Providers []string
}

// Worker is one worker of this process.
type Worker struct {
	// Name tells the workers of a process apart; Lane is the lane that it works on, "" the default one.
	Name, Lane string
	// Counts are those of [reference.Worker.Counts].
	Counts func() reference.WorkerCounts
}

// Metrics are the signals of one process. It is safe for concurrent use and starts no goroutine.
type Metrics struct {
	registry *prometheus.Registry
	receiver *receiver
}

// New checks the configuration and makes the signals, in a registry of their own together with those of the Go runtime and the process.
func New(cfg Config) (*Metrics, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("configure metrics: %w", err)
	}
	m := &Metrics{registry: prometheus.NewRegistry(), receiver: newReceiver(cfg.Providers)}
	all := append(m.receiver.collectors(),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newWorkers(cfg.Workers))
	if cfg.Queue != nil {
		all = append(all, newDepth(cfg.Queue, cfg.Lanes))
	}
	for _, c := range all {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("configure metrics: %w", err)
		}
	}
	return m, nil
}

func (cfg Config) check() error {
	var faults []error
	for _, name := range slices.Concat(cfg.Lanes, cfg.Providers) {
		if name == Other || name == DefaultLane {
			faults = append(faults, fmt.Errorf("%q cannot be the name of a lane or provider: it has a meaning in the labels", name))
		}
	}
	seen := map[string]bool{}
	for _, w := range cfg.Workers {
		switch {
		case w.Counts == nil:
			faults = append(faults, fmt.Errorf("worker %q has no Counts", w.Name))
		case seen[w.Name]:
			faults = append(faults, fmt.Errorf("two workers are called %q", w.Name))
		}
		seen[w.Name] = true
	}
	return errors.Join(faults...)
}

// Handler answers a scrape. A signal that cannot be read is left out, and the others are served.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Registry: m.registry, MaxRequestsInFlight: maxScrapes})
}

// maxScrapes is how many scrapes may run at once; each asks the queue.
const maxScrapes = 4

// laneLabel is how a lane is shown.
func laneLabel(lane string) string {
	if lane == "" {
		return DefaultLane
	}
	return lane
}
