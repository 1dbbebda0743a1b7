package dashboard

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// watch asks the queue and the workers again and again, once for all who look.
type watch struct {
	queue    queue.Depther
	workers  []Worker
	lanes    []string
	interval time.Duration

	mu sync.Mutex
	// samples are the last ones that succeeded, oldest first; err is the latest failure, nil after a success.
	samples []sample
	err     error
	// changed is closed and replaced with every sample; ended is closed for good.
	changed, ended chan struct{}
	readers        int
}

// sample is what was seen at one time.
type sample struct {
	at     time.Time
	lanes  []queue.LaneDepth
	counts []reference.WorkerCounts
}

// rateSamples is over how many samples a rate is taken; sampleTimeout is how long the queue may take for one.
const (
	rateSamples   = 30
	sampleTimeout = 3 * time.Second
)

func newWatch(cfg Config) *watch {
	return &watch{
		queue: cfg.Queue, workers: cfg.Workers, lanes: cfg.Lanes, interval: cfg.Interval,
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
}

// run takes samples until ctx ends.
func (w *watch) run(ctx context.Context) {
	defer close(w.ended)
	ticker := time.NewTicker(w.interval)
	defer ticker.Stop()
	for {
		w.take(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// take takes one sample.
func (w *watch) take(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	depth, err := w.queue.Depth(ctx)
	s := sample{at: time.Now(), lanes: w.allLanes(depth)}
	for _, worker := range w.workers {
		s.counts = append(s.counts, worker.Counts())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; err == nil {
		if len(w.samples) > rateSamples {
			w.samples = slices.Delete(w.samples, 0, 1)
		}
		w.samples = append(w.samples, s)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

// allLanes are the queue's lanes and those of the configuration, by name.
func (w *watch) allLanes(depth queue.Depth) []queue.LaneDepth {
	all := map[string]queue.LaneDepth{"": {}}
	for _, name := range w.lanes {
		all[name] = queue.LaneDepth{Lane: name}
	}
	if len(depth.Lanes) == 0 { // a queue that knows no lanes
		all[""] = queue.LaneDepth{Waiting: depth.Waiting, Leased: depth.Leased, Dead: depth.Dead, Done: depth.Done, Oldest: depth.Oldest}
	}
	for _, lane := range depth.Lanes {
		all[lane.Lane] = lane
	}
	sorted := make([]queue.LaneDepth, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, all[name])
	}
	return sorted
}

// span is the first and the last sample of those that rates are taken over, and the latest failure. Before the first success both are the zero sample.
func (w *watch) span() (first, last sample, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.samples) == 0 {
		return sample{}, sample{}, w.err
	}
	return w.samples[0], w.samples[len(w.samples)-1], w.err
}

// next returns a channel that is closed with the next sample.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

// enter counts a reader of the stream, if there is room for one more.
func (w *watch) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers == maxReaders {
		return false
	}
	w.readers++
	return true
}

func (w *watch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readers--
}

// maxReaders is how many may follow the numbers at once.
const maxReaders = 64
