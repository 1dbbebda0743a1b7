package reports

import (
	"bytes"
	"testing"
	"time"

	lib "github.com/tsenart/vegeta/v12/lib"
)

// TestVegetaSeesEveryAttempt compares what vegeta reads with the verdict of the same run.
func TestVegetaSeesEveryAttempt(t *testing.T) {
	eachRun(t, func(t *testing.T, r *Report) {
		for name, decoder := range map[string]lib.DecoderFactory{"vegeta-gob": lib.NewDecoder, "vegeta-json": lib.NewJSONDecoder} {
			var m lib.Metrics
			next := decoder(bytes.NewReader([]byte(write(t, Formats()[name], r))))
			for {
				var one lib.Result
				if err := next.Decode(&one); err != nil {
					break
				}
				m.Add(&one)
			}
			m.Close()
			c := r.Verdict.Counts
			if int64(m.Requests) != int64(c.Attempts) || int64(m.StatusCodes["200"]) != int64(c.AttemptsOK) {
				t.Errorf("%s: %d requests, %v; want %d attempts, %d of them successful", name, m.Requests, m.StatusCodes, c.Attempts, c.AttemptsOK)
			}
			if ms := r.Verdict.LatencyMS.AckAll.Max; m.Requests > 0 && (ms == nil || m.Latencies.Max.Round(time.Millisecond) != time.Duration(*ms*1e6).Round(time.Millisecond)) {
				t.Errorf("%s: slowest %v, in the verdict %v ms", name, m.Latencies.Max, ms)
			}
		}
	})
}
