//go:build !linux

package perf

import "time"

// waitUntil waits as precisely as the runtime can.
func waitUntil(t time.Time) { <-time.After(time.Until(t)) }
