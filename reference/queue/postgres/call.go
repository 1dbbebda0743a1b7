package postgres

import (
	"context"
	"sync/atomic"
)

// The bounds of what shares one statement. A single call may be larger; it is then alone.
const (
	maxCalls = 512
	maxBytes = 4 << 20
)

// call is what somebody waits for while a goroutine of the queue works on it. Make it with newCall.
type call struct {
	state  atomic.Uint32
	result chan error
}

const (
	stateWaited    = iota // somebody waits for the result
	stateAnswered         // the result is in the channel
	stateAbandoned        // the caller left
)

func newCall() call { return call{result: make(chan error, 1)} }

// wait returns the answer, or the error of ctx if that ends first.
func (c *call) wait(ctx context.Context) error {
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
		if c.state.CompareAndSwap(stateWaited, stateAbandoned) {
			return ctx.Err()
		}
		return <-c.result
	}
}

// answer reports whether there was somebody to take the result.
func (c *call) answer(err error) bool {
	if !c.state.CompareAndSwap(stateWaited, stateAnswered) {
		return false
	}
	c.result <- err
	return true
}

// abandoned reports whether the caller left.
func (c *call) abandoned() bool { return c.state.Load() == stateAbandoned }

// gather adds the calls that wait to the first, within the bounds.
func gather[C interface{ bytes() int }](first C, more <-chan C) []C {
	batch, bytes := []C{first}, first.bytes()
	for len(batch) < maxCalls && bytes < maxBytes {
		select {
		case c, ok := <-more:
			if !ok {
				return batch
			}
			batch = append(batch, c)
			bytes += c.bytes()
		default:
			return batch
		}
	}
	return batch
}
