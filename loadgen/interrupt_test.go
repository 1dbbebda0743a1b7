package loadgen

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestInterruptible: what is to be done when the context ends is done once, unless it was taken back before.
func TestInterruptible(t *testing.T) {
	for name, tt := range map[string]struct {
		// run gets the context, its end, and what counts the calls.
		run  func(c *interruptible, end func(), f func())
		want int
	}{
		"ends":           {func(c *interruptible, end func(), f func()) { c.AfterFunc(f); end() }, 1},
		"had ended":      {func(c *interruptible, end func(), f func()) { end(); synctest.Wait(); c.AfterFunc(f) }, 1},
		"ends meanwhile": {func(c *interruptible, end func(), f func()) { end(); c.AfterFunc(f) }, 1},
		"taken back": {func(c *interruptible, end func(), f func()) {
			if stop := c.AfterFunc(f); !stop() || stop() {
				t.Error("taken back twice, or not at all")
			}
			end()
		}, 0},
		"one after the other": {func(c *interruptible, end func(), f func()) {
			for range 3 {
				c.AfterFunc(f)()
			}
			c.AfterFunc(f)
			end()
		}, 1},
		"two at once": {func(c *interruptible, end func(), f func()) { c.AfterFunc(f); c.AfterFunc(f); end() }, 2},
		"too late": {func(c *interruptible, end func(), f func()) {
			stop := c.AfterFunc(f)
			end()
			synctest.Wait()
			if stop() {
				t.Error("taken back after it was called")
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				calls := make(chan struct{}, 10)
				tt.run(newInterruptible(ctx), cancel, func() { calls <- struct{}{} })
				synctest.Wait()
				if len(calls) != tt.want {
					t.Errorf("called %d times, want %d", len(calls), tt.want)
				}
			})
		})
	}
}
