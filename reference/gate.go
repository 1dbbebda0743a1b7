package reference

import (
	"context"
	"sync"
	"time"
)

// gate keeps a worker from taking jobs while the downstream has asked everybody to wait. The zero value is open.
type gate struct {
	mu    sync.Mutex
	until time.Time
}

// closeFor keeps the gate closed for at least d from now. It never opens it earlier than it would have.
func (g *gate) closeFor(d time.Duration) {
	until := time.Now().Add(min(max(d, 0), maxRetryAfter))
	g.mu.Lock()
	defer g.mu.Unlock()
	if until.After(g.until) {
		g.until = until
	}
}

// left is how long the gate stays closed, 0 if it is open.
func (g *gate) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(time.Until(g.until), 0)
}

// wait returns true once the gate is open, false when ctx has ended.
func (g *gate) wait(ctx context.Context) bool {
	for {
		left := g.left()
		if left == 0 {
			return ctx.Err() == nil
		}
		if !sleep(ctx, left) {
			return false
		}
	}
}
