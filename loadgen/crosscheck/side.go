package crosscheck

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Side is what one of the two found.
type Side struct {
	// Sent is how many requests were sent. OK were answered with what counts as success; Refused are the other answers by status; Unanswered were sent
	// and got no answer; Unconnected never had a connection. Sent is their sum.
	Sent, OK                int
	Refused                 map[int]int
	Unanswered, Unconnected int
	// PerSecond is the rate at which requests were sent, from the first to the last of a round; the mean over the rounds.
	PerSecond float64
	// Own are latencies by the generator's own clock, from the begin of sending; Due are those of the same requests from when they were due; Late is the
	// difference, of floodproof's only where a slot was free. All requests count, whatever came of them.
	Own, Due, Late Latencies
	// Busiest is the highest number of requests in flight. Blocked found no free slot when they were due; only floodproof tells.
	Busiest, Blocked int
	// DueP99s are the p99 of Due of each round.
	DueP99s []time.Duration

	rates float64
}

// longest is the largest latency that is told apart from larger ones.
const longest = time.Hour

// Latencies is a distribution, to a thousandth of each value and to the microsecond.
type Latencies struct{ *hdrhistogram.Histogram }

func newLatencies() Latencies {
	return Latencies{hdrhistogram.New(1, longest.Microseconds(), 3)}
}

// add counts one latency. One below a microsecond counts as that.
func (l Latencies) add(d time.Duration) {
	_ = l.RecordValue(min(max(d, time.Microsecond), longest).Microseconds()) // it is within the range
}

// At returns a percentile, 0 without samples.
func (l Latencies) At(percentile float64) time.Duration {
	return time.Duration(l.ValueAtQuantile(percentile)) * time.Microsecond
}

func newSide() Side {
	return Side{Refused: map[int]int{}, Own: newLatencies(), Due: newLatencies(), Late: newLatencies()}
}

// round is one round of one side.
type round struct {
	Side
	first, last time.Duration
}

func newRound() *round { return &round{Side: newSide(), first: longest} }

// sent counts a request that was sent at the given offset from the begin of the round.
func (r *round) sent(at time.Duration) {
	r.Sent++
	r.first, r.last = min(r.first, at), max(r.last, at)
}

// answered counts an answer.
func (r *round) answered(status int, success bool) {
	if success {
		r.OK++
	} else {
		r.Refused[status]++
	}
}

// add takes a round in.
func (s *Side) add(r *round) {
	s.Sent += r.Sent
	s.OK += r.OK
	for status, n := range r.Refused {
		s.Refused[status] += n
	}
	s.Unanswered += r.Unanswered
	s.Unconnected += r.Unconnected
	s.Own.Merge(r.Own.Histogram)
	s.Due.Merge(r.Due.Histogram)
	s.Late.Merge(r.Late.Histogram)
	s.Busiest = max(s.Busiest, r.Busiest)
	s.Blocked += r.Blocked
	s.DueP99s = append(s.DueP99s, r.Due.At(99))
	if r.last > r.first {
		s.rates += float64(r.Sent-1) / (r.last - r.first).Seconds()
	}
	s.PerSecond = s.rates / float64(len(s.DueP99s))
}

// Failed is how many requests did not succeed.
func (s *Side) Failed() int { return s.Sent - s.OK }

// Answered is how many requests got an answer at all.
func (s *Side) Answered() int { return s.Sent - s.Unanswered - s.Unconnected }
