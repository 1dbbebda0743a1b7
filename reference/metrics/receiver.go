package metrics

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// receiver are the signals of a receiver.
type receiver struct {
	known    map[string]bool
	requests *prometheus.CounterVec
	refusals *prometheus.CounterVec
	acks     *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// ackBuckets reach from a queue that is fast to a provider that has given up, in seconds.
var ackBuckets = [...]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newReceiver(providers []string) *receiver {
	r := &receiver{
		known: map[string]bool{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "floodproof_receiver_requests_total", Help: "Deliveries, by how they were answered.",
		}, []string{"provider", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "floodproof_receiver_refusals_total", Help: "Deliveries that were not taken, by why.",
		}, []string{"provider", "reason"}),
		acks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "floodproof_receiver_ack_seconds", Help: "Time from the end of a delivery's headers to its answer, where that was success.", Buckets: ackBuckets[:],
		}, []string{"provider"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "floodproof_receiver_in_flight", Help: "Deliveries that are being answered."}),
	}
	for _, name := range providers {
		r.known[name] = true
		// They exist from the start, so that a rate over the first success, or refusal, is not missed.
		r.acks.WithLabelValues(name)
		r.requests.WithLabelValues(name, "200")
	}
	return r
}

func (r *receiver) collectors() []prometheus.Collector {
	return []prometheus.Collector{r.requests, r.refusals, r.acks, r.inFlight}
}

// Middleware counts what the receiver is sent and what it answers. Only deliveries count: what asks for its health does not.
func (m *Metrics) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name, ok := strings.CutPrefix(req.URL.Path, "/webhooks/")
		if !ok {
			next.ServeHTTP(w, req)
			return
		}
		m.receiver.serve(next, w, req, name)
	})
}

func (r *receiver) serve(next http.Handler, w http.ResponseWriter, req *http.Request, name string) {
	if !r.known[name] {
		name = Other
	}
	start := time.Now()
	seen := &statusWriter{ResponseWriter: w}
	r.inFlight.Inc()
	defer func() {
		r.inFlight.Dec()
		r.count(name, seen.status, time.Since(start))
	}()
	next.ServeHTTP(seen, req)
	if seen.status == 0 {
		seen.status = http.StatusOK // what the server answers for a handler that says nothing
	}
}

func (r *receiver) count(provider string, status int, took time.Duration) {
	if status == 0 { // The handler panicked before it answered, and the connection was closed.
		status = http.StatusInternalServerError
	}
	r.requests.WithLabelValues(provider, strconv.Itoa(status)).Inc()
	if status >= 200 && status < 300 {
		r.acks.WithLabelValues(provider).Observe(took.Seconds())
		return
	}
	r.refusals.WithLabelValues(provider, reason(status)).Inc()
}

// reason is what a receiver means by a status.
func reason(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "forged"
	case http.StatusBadRequest:
		return "malformed"
	case http.StatusRequestEntityTooLarge:
		return "too_large"
	case http.StatusUnsupportedMediaType:
		return "type"
	case http.StatusMethodNotAllowed:
		return "method"
	case http.StatusNotFound:
		return "unknown"
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return "not_now"
	case http.StatusInternalServerError:
		return "internal"
	}
	return Other
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader passes the status on. A body that is too large is not read to its end: the connection is closed instead. The server does that by itself
// where the handler has the server's own writer, which is hidden behind this one.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		if status == http.StatusRequestEntityTooLarge {
			w.Header().Set("Connection", "close")
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController reach the server's writer.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
