//go:build !linux

package memlimit

import (
	"fmt"
	"runtime"
)

func available() (Means, error) {
	return "", fmt.Errorf("%w: it needs Linux, and this is %s", ErrUnavailable, runtime.GOOS)
}

func set(int, string, int64) (*Limit, error) {
	_, err := available()
	return nil, err
}

func (*Limit) kills() (int, bool, error) { return 0, false, nil }
