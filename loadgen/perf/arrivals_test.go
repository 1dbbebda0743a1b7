package perf

import (
	"slices"
	"time"
)

// summary is what a server has seen. The caller holds the lock.
func (s *server) summary() seen {
	sum := seen{Requests: s.requests, Connections: s.connections}
	if len(s.arrivals) < 2 {
		return sum
	}
	slices.Sort(s.arrivals)
	gaps := make([]time.Duration, 0, len(s.arrivals)-1)
	for i, at := range s.arrivals[1:] {
		gaps = append(gaps, at-s.arrivals[i])
	}
	slices.Sort(gaps)
	sum.MedianGapUs = float64(gaps[len(gaps)/2]) / 1e3
	sum.Most10ms, sum.Most100ms = most(s.arrivals, 10*time.Millisecond), most(s.arrivals, 100*time.Millisecond)
	return sum
}

// most is the highest number of instants within any window of this length.
func most(instants []time.Duration, window time.Duration) int {
	highest, first := 0, 0
	for i, at := range instants {
		for at-instants[first] >= window {
			first++
		}
		highest = max(highest, i-first+1)
	}
	return highest
}
