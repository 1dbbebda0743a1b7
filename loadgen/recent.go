package loadgen

import (
	"time"

	"floodproof/loadgen/provider"
)

// windowSteps is into how many steps a window is divided: it moves by one at a time.
const windowSteps = 60

// sums counts what was sent to an endpoint. Events are those that were sent for the first time.
type sums struct{ attempts, failures, events int }

func (t *sums) add(o sums) {
	t.attempts += o.attempts
	t.failures += o.failures
	t.events += o.events
}

// window counts what was sent lately. It reaches back from now to the begin of a step, and is by up to one step longer than its length: what is on the edge counts.
// The zero value is empty.
type window struct {
	begun bool
	// since is when it began to count; current is the step that counts now, from since.
	since   time.Duration
	current int64
	steps   [windowSteps + 1]sums
	total   sums
}

// add counts what happened at an instant, which is not before any other.
func (w *window) add(length, at time.Duration, t sums) {
	if !w.begun {
		w.begun, w.since = true, at
	}
	now := int64((at - w.since) / (length / windowSteps))
	for range min(now-w.current, int64(len(w.steps))) {
		w.current++
		w.forget()
	}
	w.current = max(w.current, now)
	w.steps[w.current%int64(len(w.steps))].add(t)
	w.total.add(t)
}

// forget empties the place of the oldest step, in which a new one begins.
func (w *window) forget() {
	oldest := &w.steps[w.current%int64(len(w.steps))]
	w.total.add(sums{-oldest.attempts, -oldest.failures, -oldest.events})
	*oldest = sums{}
}

// exceeds reports whether more than the allowed share failed, of enough, in a whole window.
func (w *window) exceeds(d provider.Disable, at time.Duration) bool {
	return at-w.since >= d.Window && w.total.events >= d.Events && float64(w.total.failures) > d.Share*float64(w.total.attempts)
}

// row are the instants of the last things in a row.
type row struct {
	at []time.Duration
	// n is how many there were, the last of which is at (n-1) modulo the length.
	n int
}

// full adds an instant and reports whether there are more than so many.
func (r *row) full(count int, at time.Duration) bool {
	if r.at == nil {
		r.at = make([]time.Duration, count+1)
	}
	r.at[r.n%len(r.at)] = at
	r.n++
	return r.n > count
}

// oldest is the first of a full row.
func (r *row) oldest() time.Duration { return r.at[r.n%len(r.at)] }

// clear begins a new row.
func (r *row) clear() { r.n = 0 }
