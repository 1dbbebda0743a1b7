package loadgen

import (
	"context"
	"sync"
)

// interruptible is a context that serves many requests, one at a time, each of which has something to be done if it ends. context.AfterFunc makes and links
// two objects for that each time; here it is one assignment. Package context has room for it: it is the method that AfterFunc looks for.
type interruptible struct {
	context.Context
	mu sync.Mutex
	// f is what is to be done, nil for nothing; over, that it is too late to say so.
	f    func()
	over bool
	// stop takes f back. It is made once.
	stop func() bool
}

// newInterruptible wraps a context that will be done in the end.
func newInterruptible(ctx context.Context) *interruptible {
	c := &interruptible{Context: ctx}
	c.stop = c.forget
	context.AfterFunc(ctx, c.end)
	return c
}

// AfterFunc arranges for f to be called in a goroutine of its own when the context is done, as context.AfterFunc does. stop must not be called after
// AfterFunc was called again.
func (c *interruptible) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.f != nil {
		return context.AfterFunc(c.Context, f)
	}
	c.f = f
	return c.stop
}

// forget takes f back and reports whether it was not called and will not be.
func (c *interruptible) forget() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waits := c.f != nil
	c.f = nil
	return waits
}

// end is called when the context is done, in a goroutine of its own.
func (c *interruptible) end() {
	c.mu.Lock()
	f := c.f
	c.f, c.over = nil, true
	c.mu.Unlock()
	if f != nil {
		f()
	}
}
