package crosscheck

import "encoding/json"

// latenciesJSON are a distribution in milliseconds, null without samples.
type latenciesJSON struct {
	Count int64    `json:"count"`
	P50   *float64 `json:"p50"`
	P90   *float64 `json:"p90"`
	P99   *float64 `json:"p99"`
	P999  *float64 `json:"p999"`
	Max   *float64 `json:"max"`
}

// MarshalJSON writes percentiles in milliseconds.
func (l Latencies) MarshalJSON() ([]byte, error) {
	j := latenciesJSON{Count: l.TotalCount()}
	if j.Count > 0 {
		at := func(p float64) *float64 {
			ms := float64(l.At(p).Microseconds()) / 1000
			return &ms
		}
		j.P50, j.P90, j.P99, j.P999, j.Max = at(50), at(90), at(99), at(99.9), at(100)
	}
	return json.Marshal(j)
}

// MarshalJSON writes every number of a side.
func (s Side) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Sent        int         `json:"sent"`
		OK          int         `json:"ok"`
		Refused     map[int]int `json:"refused"`
		Unanswered  int         `json:"unanswered"`
		Unconnected int         `json:"unconnected"`
		PerSecond   float64     `json:"achieved_per_s"`
		Busiest     int         `json:"busiest"`
		Blocked     int         `json:"blocked"`
		Own         Latencies   `json:"own_ms"`
		Due         Latencies   `json:"due_ms"`
		Late        Latencies   `json:"late_ms"`
	}{s.Sent, s.OK, s.Refused, s.Unanswered, s.Unconnected, s.PerSecond, s.Busiest, s.Blocked, s.Own, s.Due, s.Late})
}

// MarshalJSON writes what was asked for, both sides, and what to make of them.
func (r *Result) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		URL         string    `json:"url"`
		Rate        int       `json:"rate"`
		ForS        float64   `json:"for_s"`
		Rounds      int       `json:"rounds"`
		Slots       int       `json:"slots"`
		Seed        uint64    `json:"seed"`
		Meaningless bool      `json:"meaningless"`
		Vegeta      Side      `json:"vegeta"`
		Floodproof  Side      `json:"floodproof"`
		Findings    []Finding `json:"findings"`
	}{r.URL, r.Rate, r.For.Seconds(), r.Rounds, r.Slots, r.Seed, r.Meaningless(), r.Vegeta, r.Floodproof, r.Findings()})
}
