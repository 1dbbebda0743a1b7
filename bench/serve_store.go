package bench

import (
	"context"
	"errors"

	"floodproof/reference/dashboard"
	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// openServeStore opens the queue of a served pipeline.
func openServeStore(ctx context.Context, cfg *serveConfig) (serveStore, error) {
	q, err := sqlite.Open(ctx, cfg.dir, sqlite.Options{Lease: cfg.lease})
	if err != nil {
		return nil, err
	}
	return storeWithHistory{q}, nil
}

// storeWithHistory is the embedded queue as the dashboard asks it.
type storeWithHistory struct{ *sqlite.Queue }

// Event implements dashboard.Historian.
func (s storeWithHistory) Event(ctx context.Context, provider, eventID string) (dashboard.Event, error) {
	e, err := s.Queue.Event(ctx, provider, eventID)
	if errors.Is(err, queue.ErrUnknownEvent) {
		return dashboard.Event{}, dashboard.ErrUnknownEvent
	}
	if err != nil {
		return dashboard.Event{}, err
	}
	shown := dashboard.Event{Job: e.Job, State: string(e.State), Since: e.Since, Leases: e.Leases}
	for _, a := range e.Attempts {
		shown.Attempts = append(shown.Attempts, dashboard.Attempt(a))
	}
	return shown, nil
}

// unopened stands for a queue while the configuration is checked. Nothing may be asked of it.
type unopened struct {
	queue.Queue
	queue.Stepper
	boardQueue
}

// boardQueue is another name of it, because the fields of a struct need different ones.
type boardQueue = dashboard.Queue
