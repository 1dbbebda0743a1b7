package versus

import "floodproof/reports/verdict"

// Metric is one column of a comparison.
type Metric struct {
	// Key is its name in compare.json, Name that for people, Unit the unit of its values, Doc what it is in a sentence.
	Key  string `json:"key"`
	Name string `json:"name"`
	Unit string `json:"unit"`
	Doc  string `json:"doc"`
	// HigherIsBetter: otherwise lower is.
	HigherIsBetter bool `json:"higher_is_better"`
	// Ceiling: the memory backend shows how good the harness itself is at it.
	Ceiling bool `json:"ceiling"`

	of func(*Run) *float64
}

// Metrics are all columns, in their order.
func Metrics() []Metric {
	ack := func(get func(verdict.Latency) *float64) func(*Run) *float64 {
		return func(r *Run) *float64 { return get(r.Verdict.LatencyMS.Ack) }
	}
	effect := func(get func(verdict.Latency) *float64) func(*Run) *float64 {
		return func(r *Run) *float64 { return get(r.Verdict.LatencyMS.Effect) }
	}
	p50 := func(l verdict.Latency) *float64 { return l.P50 }
	p99 := func(l verdict.Latency) *float64 { return l.P99 }
	p999 := func(l verdict.Latency) *float64 { return l.P999 }
	return []Metric{
		{Key: "acks_per_s", Name: "acks/s", Unit: "1/s", Doc: "deliveries answered with success in the busiest second", HigherIsBetter: true, Ceiling: true, of: func(r *Run) *float64 { return r.Facts.AcksPerS }},
		{Key: "effects_per_s", Name: "effects/s", Unit: "1/s", Doc: "effects at the downstream in the busiest second: end to end", HigherIsBetter: true, Ceiling: true, of: func(r *Run) *float64 { return r.Facts.EffectsPerS }},
		{Key: "ack_p50_ms", Name: "ack p50", Unit: "ms", Doc: "from due to answered, gated segments", Ceiling: true, of: ack(p50)},
		{Key: "ack_p99_ms", Name: "ack p99", Unit: "ms", Doc: "from due to answered, gated segments", Ceiling: true, of: ack(p99)},
		{Key: "ack_p999_ms", Name: "ack p99.9", Unit: "ms", Doc: "from due to answered, gated segments; it needs 10,000 samples", Ceiling: true, of: ack(p999)},
		{Key: "effect_p50_ms", Name: "effect p50", Unit: "ms", Doc: "end to end, from due to the effect, gated segments", Ceiling: true, of: effect(p50)},
		{Key: "effect_p99_ms", Name: "effect p99", Unit: "ms", Doc: "end to end, from due to the effect, gated segments", Ceiling: true, of: effect(p99)},
		{Key: "effect_p999_ms", Name: "effect p99.9", Unit: "ms", Doc: "end to end, from due to the effect, gated segments; it needs 10,000 samples", Ceiling: true, of: effect(p999)},
		{Key: "acks_back_s", Name: "acks back", Unit: "s", Doc: "the longest silence of acknowledgements around a kill of the broker, with the time that it was kept down", of: func(r *Run) *float64 { return r.Facts.AcksBackS }},
		{Key: "work_back_s", Name: "work back", Unit: "s", Doc: "the longest silence of effects around a kill of the broker, with the time that it was kept down", of: func(r *Run) *float64 { return r.Facts.WorkBackS }},
		{Key: "broker_cpu_s", Name: "broker CPU", Unit: "s", Doc: "processor time of the queue's server in the whole run", of: func(r *Run) *float64 { return r.Facts.BrokerCPUS }},
		{Key: "pipeline_cpu_s", Name: "pipeline CPU", Unit: "s", Doc: "processor time of receivers and workers in the whole run, with an embedded queue", of: func(r *Run) *float64 { return r.Facts.PipelineCPUS }},
		{Key: "broker_mb", Name: "broker mem", Unit: "MB", Doc: "the highest memory of the queue's server", of: func(r *Run) *float64 { return r.Facts.BrokerMB }},
		{Key: "pipeline_mb", Name: "pipeline mem", Unit: "MB", Doc: "the highest memory of receivers and workers together", of: func(r *Run) *float64 { return r.Facts.PipelineMB }},
	}
}
