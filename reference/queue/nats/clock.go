package nats

import (
	"context"
	"sync/atomic"
	"time"
)

// clock is the server's, as far as it can be known here: receivers and workers on different machines all go by it.
type clock struct {
	local  func() time.Time
	offset atomic.Int64 // microseconds that the server is ahead
}

// now is the server's clock in microseconds.
func (c *clock) now() int64 { return c.local().UnixMicro() + c.offset.Load() }

// here turns the server's time into that of this machine's clock, which is what the caller compares it with.
func (c *clock) here(at int64) time.Time { return time.UnixMicro(at - c.offset.Load()) }

const (
	clockEvery   = 15 * time.Second
	clockSamples = 5
)

// set compares the clocks. The answer was given between the question and its arrival, so that the middle is wrong by half of the shortest way at most.
func (c *clock) set(ctx context.Context, l *link) error {
	best, offset := time.Hour, int64(0)
	for range clockSamples {
		var answer struct {
			At time.Time `json:"ts"`
		}
		begin, from := time.Now(), c.local()
		if err := l.ask(ctx, "$JS.API.STREAM.INFO."+l.stream, struct{}{}, &answer); err != nil {
			return err
		}
		if took := time.Since(begin); took < best {
			best, offset = took, answer.At.Sub(from.Add(took/2)).Microseconds()
		}
	}
	c.offset.Store(offset)
	return nil
}

// keep sets the clock again and again until ctx ends. While the server does not answer the last comparison holds.
func (c *clock) keep(ctx context.Context, l *link) {
	ticker := time.NewTicker(clockEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = c.set(ctx, l)
		case <-ctx.Done():
			return
		}
	}
}
