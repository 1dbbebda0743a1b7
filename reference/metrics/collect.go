package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// depth asks the queue with every scrape.
type depth struct {
	queue            queue.Depther
	known            map[string]bool
	jobs, oldest, up *prometheus.Desc
	held, expired    *prometheus.Desc
}

// depthTimeout is how long the queue may take to answer, well below the ten seconds that Prometheus waits for a scrape by default
// (https://prometheus.io/docs/prometheus/latest/configuration/configuration/, read November 2026).
const depthTimeout = 3 * time.Second

func newDepth(q queue.Depther, lanes []string) *depth {
	d := &depth{
		queue:   q,
		known:   map[string]bool{"": true},
		jobs:    prometheus.NewDesc("floodproof_queue_jobs", "Jobs in the queue.", []string{"lane", "state"}, nil),
		oldest:  prometheus.NewDesc("floodproof_queue_oldest_seconds", "How long the oldest due job has waited since it was due.", []string{"lane"}, nil),
		held:    prometheus.NewDesc("floodproof_queue_held_seconds", "How long the job that is leased longest has been.", []string{"lane"}, nil),
		expired: prometheus.NewDesc("floodproof_queue_expired_total", "Finished jobs that were deleted because of their age.", []string{"lane"}, nil),
		up:      prometheus.NewDesc("floodproof_queue_up", "1 if the queue answered, else 0.", nil, nil),
	}
	for _, name := range lanes {
		d.known[name] = true
	}
	return d
}

// Describe implements prometheus.Collector.
func (d *depth) Describe(ch chan<- *prometheus.Desc) {
	ch <- d.jobs
	ch <- d.oldest
	ch <- d.held
	ch <- d.expired
	ch <- d.up
}

// Collect implements prometheus.Collector.
func (d *depth) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), depthTimeout) // a scrape's own context does not reach a collector
	defer cancel()
	now, err := d.queue.Depth(ctx)
	if err != nil {
		ch <- prometheus.MustNewConstMetric(d.up, prometheus.GaugeValue, 0)
		return
	}
	ch <- prometheus.MustNewConstMetric(d.up, prometheus.GaugeValue, 1)
	for name, lane := range d.lanes(now) {
		for state, n := range map[string]int64{"waiting": lane.Waiting, "leased": lane.Leased, "dead": lane.Dead, "done": lane.Done} {
			ch <- prometheus.MustNewConstMetric(d.jobs, prometheus.GaugeValue, float64(n), name, state)
		}
		ch <- prometheus.MustNewConstMetric(d.oldest, prometheus.GaugeValue, lane.Oldest.Seconds(), name)
		ch <- prometheus.MustNewConstMetric(d.held, prometheus.GaugeValue, lane.Held.Seconds(), name)
		ch <- prometheus.MustNewConstMetric(d.expired, prometheus.CounterValue, float64(lane.Expired), name)
	}
}

// lanes are all known lanes, also those without a job so far, and the sum of the others if there are any.
func (d *depth) lanes(now queue.Depth) map[string]queue.LaneDepth {
	all := map[string]queue.LaneDepth{}
	for name := range d.known {
		all[laneLabel(name)] = queue.LaneDepth{}
	}
	if len(now.Lanes) == 0 { // a queue that knows no lanes
		all[DefaultLane] = queue.LaneDepth{Waiting: now.Waiting, Leased: now.Leased, Dead: now.Dead, Done: now.Done, Expired: now.Expired, Oldest: now.Oldest, Held: now.Held}
	}
	for _, lane := range now.Lanes {
		label := Other
		if d.known[lane.Lane] {
			label = laneLabel(lane.Lane)
		}
		sum := all[label]
		sum.Waiting, sum.Leased, sum.Dead, sum.Done = sum.Waiting+lane.Waiting, sum.Leased+lane.Leased, sum.Dead+lane.Dead, sum.Done+lane.Done
		sum.Expired += lane.Expired
		sum.Oldest, sum.Held = max(sum.Oldest, lane.Oldest), max(sum.Held, lane.Held)
		all[label] = sum
	}
	return all
}

// workers reads the counts that the workers keep anyway: nothing is counted twice, and a job costs nothing more.
type workers struct {
	all                                       []Worker
	jobs, inFlight, retries, panics, failures *prometheus.Desc
}

func newWorkers(all []Worker) *workers {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("floodproof_worker_"+name, help, append([]string{"worker", "lane"}, more...), nil)
	}
	return &workers{
		all:      all,
		jobs:     desc("jobs_total", "Leases that ended, by how.", "outcome"),
		inFlight: desc("in_flight", "Jobs in hand."),
		retries:  desc("retries_total", "Jobs that were given back although their handler did not fail, by why.", "cause"),
		panics:   desc("panics_total", "Handlers that panicked."),
		failures: desc("queue_failures_total", "Calls of the queue that failed and were repeated.", "call"),
	}
}

// Describe implements prometheus.Collector.
func (ws *workers) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{ws.jobs, ws.inFlight, ws.retries, ws.panics, ws.failures} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (ws *workers) Collect(ch chan<- prometheus.Metric) {
	for _, w := range ws.all {
		c := w.Counts()
		count := func(d *prometheus.Desc, n int64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{w.Name, laneLabel(w.Lane)}, more...)...)
		}
		count(ws.jobs, c.Done, "done")
		count(ws.jobs, c.Retried, "retried")
		count(ws.jobs, c.Dead, "dead")
		count(ws.jobs, c.LeaseLost, "lease_lost")
		count(ws.jobs, c.Unsettled, "unsettled")
		count(ws.retries, c.Throttled, "throttled")
		count(ws.retries, c.Stopped, "stopped")
		count(ws.panics, c.Panics)
		count(ws.failures, c.ReceiveFailures, "receive")
		count(ws.failures, c.SettleFailures, "settle")
		ch <- prometheus.MustNewConstMetric(ws.inFlight, prometheus.GaugeValue, float64(InFlight(c)), w.Name, laneLabel(w.Lane))
	}
}

// InFlight is how many jobs a worker has in hand, by its counts. They are read one after the other while the worker goes on, so it is never below 0 here but may be off by a few.
func InFlight(c reference.WorkerCounts) int64 {
	return max(0, c.Leased-c.Done-c.Retried-c.Dead-c.LeaseLost-c.Unsettled)
}
