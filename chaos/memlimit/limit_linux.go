package memlimit

import (
	"errors"
	"fmt"
	"os"
	"strconv"
)

func available() (Means, error) {
	for _, h := range hierarchies() {
		if dir, err := h.make("floodproof-probe-" + strconv.Itoa(os.Getpid())); err == nil {
			return h.means, removeGroup(dir)
		}
	}
	if err := canLimit(os.Getpid()); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return RLimit, nil
}

func set(pid int, name string, room int64) (*Limit, error) {
	room = max(room, int64(os.Getpagesize()))
	var errs []error
	for _, h := range hierarchies() {
		l, err := h.set(pid, name, room)
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	l, err := setRLimit(pid, room)
	if err == nil {
		return l, nil
	}
	return nil, fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(append(errs, err)...))
}
