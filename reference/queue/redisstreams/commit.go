package redisstreams

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// The bounds of one script. A single call may be larger; it is then alone.
const (
	maxBatchOps   = 256
	maxBatchBytes = 4 << 20
)

// operation is one caller's part of a script.
type operation struct {
	// args are its arguments of the script, and bytes about how many.
	args  []any
	bytes int
	// valid and err are the answer: whether the lease was in force, and what went wrong.
	valid bool
	err   error
	// answered is closed when they may be read.
	answered chan struct{}
	// left says that nobody waits any more: what has not been sent need not be.
	left atomic.Bool
}

func newOperation(args []any, bytes int) *operation {
	return &operation{args: args, bytes: bytes, answered: make(chan struct{})}
}

// committer makes one script, and so one sync of the append-only file, of all calls that wait.
//
// Each of its goroutines takes what has come, sends it and waits for the answer. The server runs one script at a time and syncs before it answers; a second
// goroutine fills and sends the next script meanwhile, so that the server need not wait for us between two of them.
type committer struct {
	ops chan *operation
	// send runs the script for a batch and fills in the answers.
	send    func(batch []*operation)
	stopped sync.WaitGroup
}

func startCommitter(goroutines int, send func([]*operation)) *committer {
	c := &committer{ops: make(chan *operation, maxBatchOps), send: send}
	for range goroutines {
		c.stopped.Go(c.run)
	}
	return c
}

// do hands an operation in and waits for its answer or the end of ctx. After the latter nobody knows whether it was done.
func (c *committer) do(ctx context.Context, o *operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.ops <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-o.answered:
		return o.err
	case <-ctx.Done():
		o.left.Store(true)
		return ctx.Err()
	}
}

func (c *committer) run() {
	for first := range c.ops {
		runtime.Gosched() // others who are about to call, most of them answered a moment ago, come along: fewer and larger scripts
		batch := c.gather(first)
		if len(batch) == 0 {
			continue
		}
		c.send(batch)
		for _, o := range batch {
			close(o.answered)
		}
	}
}

// gather adds to an operation those that wait, within the bounds, without those whose callers have left.
func (c *committer) gather(o *operation) (batch []*operation) {
	bytes := 0
	for {
		if !o.left.Load() {
			batch = append(batch, o)
			bytes += o.bytes
		}
		if len(batch) >= maxBatchOps || bytes >= maxBatchBytes {
			return batch
		}
		var ok bool
		select {
		case o, ok = <-c.ops:
			if !ok {
				return batch
			}
		default:
			return batch
		}
	}
}

// close ends the goroutines after everything that was handed in. Nobody may hand in anything any more.
func (c *committer) close() {
	close(c.ops)
	c.stopped.Wait()
}
