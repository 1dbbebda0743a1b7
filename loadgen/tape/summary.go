package tape

import (
	"encoding/json"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Summary is what a replay came to. Requests = Sent + Skipped + LeftOut + NotSent, and Sent = OK + all of Refused + Unanswered.
type Summary struct {
	// Requests is how many the recording has.
	Requests int
	// Sent were sent, once each, or could not be for a reason that counts as unanswered.
	Sent int
	// OK were answered with a status that their provider takes for success; Refused counts the other answers by status.
	OK      int
	Refused map[int]int
	// Unanswered got no answer: none in time, no connection, or one that broke.
	Unanswered int
	// Unsigned were sent without a signature.
	Unsigned int
	// Skipped have no body in the recording. LeftOut were due after the end of the replay. NotSent were due before it was interrupted.
	Skipped, LeftOut, NotSent int
	// Late were begun more than 10 ms after they were due although a slot was free: this machine was too slow. Blocked had to wait for a slot: the
	// target was.
	Late, Blocked int
	// Elapsed is how long the replay took.
	Elapsed time.Duration
	// FirstError is why the first unanswered request was not answered.
	FirstError error

	latency, lag *hdrhistogram.Histogram
}

// longest is the largest latency that is told apart from larger ones.
const longest = time.Hour

func newSummary(requests int) Summary {
	return Summary{
		Requests: requests, Refused: map[int]int{},
		latency: hdrhistogram.New(1, longest.Microseconds(), 3), lag: hdrhistogram.New(1, longest.Microseconds(), 3),
	}
}

// add counts one request.
func (s *Summary) add(e ended, start time.Time) {
	if e.skipped {
		s.Skipped++
		return
	}
	s.Sent++
	if e.answer.Unsigned {
		s.Unsigned++
	}
	switch {
	case e.answer.Status == 0:
		s.Unanswered++
		if s.FirstError == nil {
			s.FirstError = e.answer.Err
		}
	case e.answer.OK:
		s.OK++
	default:
		s.Refused[e.answer.Status]++
	}
	if e.answer.OK || e.answer.TimedOut {
		observe(s.latency, e.answer.At.Sub(start)-e.due)
	}
	if !e.blocked {
		late := e.began - e.due
		observe(s.lag, late)
		if late > lateness {
			s.Late++
		}
	}
}

func observe(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(d, time.Microsecond), longest).Microseconds()) // it is within the range
}

// Passed reports whether every request of the recording that was due was sent and answered with success, and there was one.
func (s *Summary) Passed() bool {
	return s.OK > 0 && s.OK == s.Requests-s.LeftOut
}

// Percentiles are latencies in milliseconds. They are nil without samples.
type Percentiles struct {
	Count int64    `json:"count"`
	P50   *float64 `json:"p50"`
	P90   *float64 `json:"p90"`
	P99   *float64 `json:"p99"`
	P999  *float64 `json:"p999"`
	Max   *float64 `json:"max"`
}

// Latency is from the due time to the answer, of successes and of time-outs at their full length.
func (s *Summary) Latency() Percentiles { return percentiles(s.latency) }

// Lag is from the due time to the begin of sending, of requests that found a free slot.
func (s *Summary) Lag() Percentiles { return percentiles(s.lag) }

func percentiles(h *hdrhistogram.Histogram) Percentiles {
	p := Percentiles{Count: h.TotalCount()}
	if p.Count == 0 {
		return p
	}
	at := func(q float64) *float64 {
		ms := float64(h.ValueAtQuantile(q)) / 1000
		return &ms
	}
	p.P50, p.P90, p.P99, p.P999, p.Max = at(50), at(90), at(99), at(99.9), at(100)
	return p
}

// MarshalJSON writes every number, times in milliseconds unless the key says otherwise.
func (s *Summary) MarshalJSON() ([]byte, error) {
	firstError := ""
	if s.FirstError != nil {
		firstError = s.FirstError.Error()
	}
	return json.Marshal(struct {
		Passed     bool        `json:"passed"`
		Requests   int         `json:"requests"`
		Sent       int         `json:"sent"`
		OK         int         `json:"ok"`
		Refused    map[int]int `json:"refused"`
		Unanswered int         `json:"unanswered"`
		Unsigned   int         `json:"unsigned"`
		Skipped    int         `json:"skipped"`
		LeftOut    int         `json:"left_out"`
		NotSent    int         `json:"not_sent"`
		Late       int         `json:"late"`
		Blocked    int         `json:"blocked"`
		ElapsedS   float64     `json:"elapsed_s"`
		Latency    Percentiles `json:"latency_ms"`
		Lag        Percentiles `json:"lag_ms"`
		FirstError string      `json:"first_error"`
	}{
		s.Passed(), s.Requests, s.Sent, s.OK, s.Refused, s.Unanswered, s.Unsigned, s.Skipped, s.LeftOut, s.NotSent, s.Late, s.Blocked,
		s.Elapsed.Seconds(), s.Latency(), s.Lag(), firstError,
	})
}
