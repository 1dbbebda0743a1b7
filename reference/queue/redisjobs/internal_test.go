package redisjobs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// TestHook: a command that fails takes its time, so that a loop around it is no storm; one that works, and one that finds nothing, do not.
func TestHook(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want time.Duration
	}{
		{"works", nil, 0},
		{"finds nothing", redis.Nil, 0},
		{"has no connection", errors.New("connection refused"), calm},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				do := hook{}.ProcessHook(func(context.Context, redis.Cmder) error { return tt.err })
				begin := time.Now()
				if err := do(t.Context(), redis.NewCmd(t.Context(), "ping")); !errors.Is(err, tt.err) || time.Since(begin) != tt.want {
					t.Errorf("got error %v after %v, want %v after %v", err, time.Since(begin), tt.err, tt.want)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	do := hook{}.ProcessHook(func(context.Context, redis.Cmder) error { return ctx.Err() })
	if err := do(ctx, redis.NewCmd(ctx, "ping")); !errors.Is(err, context.Canceled) {
		t.Errorf("under a context that has ended: got error %v", err)
	}
}
