//go:build !linux

package loadgen

import (
	"context"
	"time"
)

// sleepUntil waits until t, or until ctx is done, as precisely as the runtime's timers are.
func sleepUntil(ctx context.Context, t time.Time) { sleepTimer(ctx, t) }
