package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// DefaultBackend is the embedded queue that needs nothing installed.
const DefaultBackend = "sqlite"

// Backend is one queue that the reference pipeline can run on.
type Backend struct {
	// Name is what --backend takes; a weaker variant carries its weakness behind an @.
	Name string
	// Doc is one sentence for `floodproof list backends`.
	Doc string
	// Open opens the queue in a directory that all processes of a run share.
	Open func(ctx context.Context, dir string, o BackendOptions) (Store, error)
}

// BackendOptions are the same for all backends.
type BackendOptions struct {
	// Lease is how long a received job belongs to its worker.
	Lease time.Duration
}

// Store is a queue that says what it promises.
type Store interface {
	queue.Queue
	Claims() queue.Claims
}

// Backends are all that this build has, the default first.
func Backends() []Backend {
	return []Backend{
		{Name: "sqlite", Doc: "embedded: one file, WAL, synchronous=FULL, group commit across processes", Open: openSQLite("FULL")},
		{Name: "sqlite@normal", Doc: "the same with synchronous=NORMAL: commits are not synced, a power cut loses them", Open: openSQLite("NORMAL")},
	}
}

func openSQLite(synchronous string) func(context.Context, string, BackendOptions) (Store, error) {
	return func(ctx context.Context, dir string, o BackendOptions) (Store, error) {
		return sqlite.Open(ctx, dir, sqlite.Options{Synchronous: synchronous, Lease: o.Lease})
	}
}

// OpenBackend opens a queue by its name.
func OpenBackend(ctx context.Context, name, dir string, o BackendOptions) (Store, error) {
	b, err := findBackend(name)
	if err != nil {
		return nil, err
	}
	s, err := b.Open(ctx, dir, o)
	if err != nil {
		return nil, fmt.Errorf("open backend %s: %w", name, err)
	}
	return s, nil
}

func findBackend(name string) (Backend, error) {
	var known []string
	for _, b := range Backends() {
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Backend{}, fmt.Errorf("unknown backend %q; this build has %s", name, strings.Join(known, ", "))
}
