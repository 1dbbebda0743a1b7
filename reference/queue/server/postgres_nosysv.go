//go:build !linux && !darwin

package server

import "context"

// awaitPostgresOrphans does nothing: where processes cannot be seen, a start that meets an earlier server's says so.
func awaitPostgresOrphans(context.Context, string) error { return nil }
