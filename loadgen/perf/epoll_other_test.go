//go:build !linux

package perf

import "errors"

// serveRaw is for Linux; elsewhere the server of goroutines has to do.
func serveRaw(func(requests, connections int)) (addr string, err error) {
	return "", errors.ErrUnsupported
}
