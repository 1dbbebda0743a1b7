// Package verdict turns a ledger into an answer: was anything lost, did anything
// happen twice, was the receiver fast enough?
//
// Judge is a function of the ledger alone. It never asks the pipeline, and it has
// three answers: what was not shown is unknown, never a pass.
package verdict

import (
	"encoding/json"
	"fmt"
)

// Outcome is the answer of one check or of all together. Its zero value is Unknown, so that a check that says nothing
// has not passed.
type Outcome uint8

const (
	Unknown Outcome = iota
	Pass
	Fail
)

// String is the outcome's name in every output: "unknown", "pass", "fail".
func (o Outcome) String() string {
	switch o {
	case Pass:
		return "pass"
	case Fail:
		return "fail"
	default:
		return "unknown"
	}
}

// MarshalText writes String.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText wrote and refuses everything else.
func (o *Outcome) UnmarshalText(b []byte) error {
	switch string(b) {
	case "pass":
		*o = Pass
	case "fail":
		*o = Fail
	case "unknown":
		*o = Unknown
	default:
		return fmt.Errorf("unknown outcome %q", b)
	}
	return nil
}

// Merge joins two outcomes: fail over unknown over pass.
func Merge(a, b Outcome) Outcome {
	switch {
	case a == Fail || b == Fail:
		return Fail
	case a == Unknown || b == Unknown:
		return Unknown
	default:
		return Pass
	}
}

// Verdict is verdict.json, schema 1. Every key is always present; what has no samples is null. Durations are
// milliseconds unless the key says otherwise.
type Verdict struct {
	Schema      int                 `json:"schema"`
	Version     string              `json:"version"`
	RunID       string              `json:"run_id"`
	Scenario    string              `json:"scenario"`
	Backend     string              `json:"backend"`
	Durability  string              `json:"durability"`
	Seed        uint64              `json:"seed"`
	Outcome     Outcome             `json:"outcome"`
	StartedAt   string              `json:"started_at"`
	DurationS   float64             `json:"duration_s"`
	Interrupted bool                `json:"interrupted"`
	Target      Target              `json:"target"`
	Counts      Counts              `json:"counts"`
	ByProvider  map[string]Provider `json:"by_provider"`
	Segments    []Segment           `json:"segments"`
	LatencyMS   Latencies           `json:"latency_ms"`
	Rates       Rates               `json:"rates"`
	Faults      []Fault             `json:"faults"`
	Findings    []Finding           `json:"findings"`
	Harness     Harness             `json:"harness"`
	Resources   Resources           `json:"resources"`
	Env         json.RawMessage     `json:"env"`
}

// Target says whose pipeline was judged.
type Target struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Observer string `json:"observer"`
}

// Counts are the sums that must balance. Events = Acked + CutOff + Unanswered + Refused + Undelivered; Acked = Applied +
// Superseded + DeadLettered + Lost + Doubled + Pending; the events not acked = Absent + Recovered + DoubledUnacked.
type Counts struct {
	Events              int64 `json:"events"`
	Deliveries          int64 `json:"deliveries"`
	Attempts            int64 `json:"attempts"`
	AttemptsOK          int64 `json:"attempts_ok"`
	AttemptsRefused     int64 `json:"attempts_refused"`
	AttemptsUnanswered  int64 `json:"attempts_unanswered"`
	AttemptsUnconnected int64 `json:"attempts_unconnected"`
	Duplicates          int64 `json:"duplicates"`
	Forged              int64 `json:"forged"`
	ForgedAccepted      int64 `json:"forged_accepted"`
	Malformed           int64 `json:"malformed"`
	Poison              int64 `json:"poison"`

	Acked       int64 `json:"acked"`
	CutOff      int64 `json:"cut_off"`
	Unanswered  int64 `json:"unanswered"`
	Refused     int64 `json:"refused"`
	Undelivered int64 `json:"undelivered"`
	Suppressed  int64 `json:"suppressed"`

	Applied        int64 `json:"applied"`
	Superseded     int64 `json:"superseded"`
	DeadLettered   int64 `json:"dead_lettered"`
	Lost           int64 `json:"lost"`
	Doubled        int64 `json:"doubled"`
	Pending        int64 `json:"pending"`
	Absent         int64 `json:"absent"`
	Recovered      int64 `json:"recovered"`
	DoubledUnacked int64 `json:"doubled_unacked"`

	Unexpected   int64 `json:"unexpected"`
	Effects      int64 `json:"effects"`
	Replayed     int64 `json:"replayed"`
	Stale        int64 `json:"stale"`
	KeyConflicts int64 `json:"key_conflicts"`
}

// Provider is one provider's share.
type Provider struct {
	Events   int64    `json:"events"`
	Acked    int64    `json:"acked"`
	Applied  int64    `json:"applied"`
	Lost     int64    `json:"lost"`
	AckP99MS *float64 `json:"ack_p99_ms"`
}

// Segment is one stretch of the day as it was played; FromS and UntilS are real seconds from the first due time.
type Segment struct {
	Name   string  `json:"name"`
	Scale  float64 `json:"scale"`
	FromS  float64 `json:"from_s"`
	UntilS float64 `json:"until_s"`
	Gated  bool    `json:"gated"`
}

// Latencies are the distributions. Ack: gated and not excused. AckAll: every genuine attempt that was answered or timed out.
// Service: from the real send. Lag: from due to send.
type Latencies struct {
	Ack     Latency `json:"ack"`
	AckAll  Latency `json:"ack_all"`
	Effect  Latency `json:"effect"`
	Service Latency `json:"service"`
	Lag     Latency `json:"lag"`
}

// Latency is one distribution; the percentiles are nil when Count is 0.
type Latency struct {
	Count   int64    `json:"count"`
	P50     *float64 `json:"p50"`
	P90     *float64 `json:"p90"`
	P99     *float64 `json:"p99"`
	P999    *float64 `json:"p999"`
	Max     *float64 `json:"max"`
	Excused int64    `json:"excused"`
}

// Rates are per real second; nil without samples.
type Rates struct {
	OfferedPerS     *float64 `json:"offered_per_s"`
	PeakOfferedPerS *float64 `json:"peak_offered_per_s"`
	AckedPerS       *float64 `json:"acked_per_s"`
	AppliedPerS     *float64 `json:"applied_per_s"`
}

// Fault is one injection. Status is "done", "failed", "vacuous" or "not-applicable".
type Fault struct {
	Fault  string  `json:"fault"`
	Target string  `json:"target"`
	AtS    float64 `json:"at_s"`
	UntilS float64 `json:"until_s"`
	Status string  `json:"status"`
}

// Finding is the answer to one invariant.
type Finding struct {
	Invariant string  `json:"invariant"`
	Outcome   Outcome `json:"outcome"`
	// Observed and Limit are for people; Value and LimitValue for programs, nil when nothing could be measured.
	Observed   string   `json:"observed"`
	Limit      string   `json:"limit"`
	Value      *float64 `json:"value"`
	LimitValue *float64 `json:"limit_value"`
	Unit       string   `json:"unit"`
	// Examples are at most ten ids, never nil.
	Examples []string `json:"examples"`
	// Hint says what to look at next.
	Hint string `json:"hint"`
}

// Harness is the health of the measurement itself.
type Harness struct {
	Late       int64    `json:"late"`
	LateP99MS  *float64 `json:"late_p99_ms"`
	Blocked    int64    `json:"blocked"`
	Skipped    int64    `json:"skipped"`
	ClockJumps int64    `json:"clock_jumps"`
	Notes      []string `json:"notes"`
}

// Resources are the highest readings, nil where nothing could be read.
type Resources struct {
	ReceiverRSSMB       *float64 `json:"receiver_rss_mb"`
	WorkerRSSMB         *float64 `json:"worker_rss_mb"`
	RunnerRSSMB         *float64 `json:"runner_rss_mb"`
	DiskBytes           *int64   `json:"disk_bytes"`
	LedgerBytesPerEvent *float64 `json:"ledger_bytes_per_event"`
}
