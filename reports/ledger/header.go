package ledger

import "time"

// Version is the format version that [Create] writes. A reader of an older version
// stays when it changes.
const Version = 1

// Header says what was run. It is written once, before every record, as JSON.
type Header struct {
	// Floodproof is the version of the program that wrote the file.
	Floodproof string `json:"floodproof"`
	RunID      string `json:"run_id"`
	Scenario   string `json:"scenario"`
	// ScenarioText is the scenario's source: the ledger carries the question with the answer.
	ScenarioText string    `json:"scenario_text"`
	Seed         uint64    `json:"seed"`
	Backend      string    `json:"backend"`
	Durability   string    `json:"durability"`
	StartedAt    time.Time `json:"started_at"`
	Target       Target    `json:"target"`
	// Providers and Steps are the names behind the indices of the records. Steps[0] is "".
	Providers []Provider `json:"providers"`
	Steps     []string   `json:"steps"`
	// Lanes are the names behind Event.Lane; Lanes[0] is "", the default lane. Empty where the scenario has no lanes.
	Lanes    []string  `json:"lanes,omitempty"`
	Segments []Segment `json:"segments"`
	Expect   Expect    `json:"expect"`
	Env      Env       `json:"env"`
}

// Provider is what the judge must know of a provider.
type Provider struct {
	Name string `json:"name"`
	// OneShot: the provider never retries, so that what it could not deliver is gone whatever the pipeline.
	OneShot bool `json:"one_shot"`
	// Timeout is how long it waits for an answer.
	Timeout time.Duration `json:"timeout"`
}

// Target says whose pipeline is judged.
type Target struct {
	// Kind is "reference", "command" or "url".
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Observer is "sink", "command" or "url".
	Observer string `json:"observer"`
}

// Segment is one stretch of the scenario's day.
type Segment struct {
	Name string `json:"name"`
	// From and Until are offsets on the day's clock; Scale is day time per real time, 1 or more.
	From  time.Duration `json:"from"`
	Until time.Duration `json:"until"`
	Scale float64       `json:"scale"`
	// Gated: latency limits count the attempts that are due in it.
	Gated bool `json:"gated"`
}

// Expect is what the scenario asks for beyond what is always judged.
type Expect struct {
	// Steps is how many steps an event's effect has, as a bit set over Header.Steps (bit 0 = the unnamed step).
	Steps uint64 `json:"steps"`
	// Delivered: listed under `expect:`.
	Delivered bool `json:"delivered"`
	// DeadLettersAccounted is nil when not listed; else the number of dead letters that are not poison and are allowed.
	DeadLettersAccounted *int `json:"dead_letters_accounted"`
	// Ordered and DebounceFinal: listed. DebounceBounds is nil when not listed.
	Ordered        bool            `json:"ordered"`
	DebounceFinal  bool            `json:"debounce_final"`
	DebounceBounds *DebounceBounds `json:"debounce_bounds"`
	// Availability is the least share of genuine attempts that succeed, 0 when not listed.
	Availability float64 `json:"availability"`
	// Recovery is the longest time from the last heal to an empty backlog, 0 when not listed.
	Recovery time.Duration `json:"recovery"`
	// Latency are the limits.
	Latency []LatencyLimit `json:"latency"`
	// LaneIsolation is nil when not listed.
	LaneIsolation *LaneIsolation `json:"lane_isolation,omitempty"`
	// RateLimit is nil when not listed; else by which share of what a limited downstream let through it may be called beyond that.
	RateLimit *float64 `json:"rate_limit,omitempty"`
	// RequireFaults: what could not be exercised on this target makes the verdict unknown.
	RequireFaults bool `json:"require_faults,omitempty"`
}

// DebounceBounds are when effects of debounced events may come, in real time.
type DebounceBounds struct {
	// Quiet is the window, MaxWait the longest wait, and Slack what more may pass.
	Quiet   time.Duration `json:"quiet"`
	MaxWait time.Duration `json:"max_wait"`
	Slack   time.Duration `json:"slack"`
}

// LaneIsolation is by how much a lane may be slower while another one is poisoned.
type LaneIsolation struct {
	// Times bounds a healthy lane's p99 by that of before: 2 is twice as long.
	Times float64 `json:"times"`
	// Floor is a p99 that is never too long, however short that of before was: below it, machines differ from second to second. 0 is none.
	Floor time.Duration `json:"floor"`
}

// LatencyLimit is one listed latency expectation.
type LatencyLimit struct {
	// Of is "ack" or "effect".
	Of string `json:"of"`
	// Percentile is between 0 and 100, exclusive: 99.9.
	Percentile float64       `json:"percentile"`
	Limit      time.Duration `json:"limit"`
}

// Env is the machine and the build.
type Env struct {
	CPUs            int               `json:"cpus"`
	Go              string            `json:"go"`
	OS              string            `json:"os"`
	FS              string            `json:"fs"`
	FsyncUsP50      *float64          `json:"fsync_us_p50"`
	Commit          string            `json:"commit"`
	BackendVersion  string            `json:"backend_version"`
	BackendSettings map[string]string `json:"backend_settings"`
}
