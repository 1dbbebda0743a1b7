package verdict

import "fmt"

// imbalances lists the sums of [Counts] that do not balance, as sentences. A judge that contradicts itself has no opinion.
func imbalances(c Counts) []string {
	sums := []struct {
		whole string
		want  int64
		parts string
		got   int64
	}{
		{"events", c.Events, "acked + cut_off + unanswered + refused + undelivered", c.Acked + c.CutOff + c.Unanswered + c.Refused + c.Undelivered},
		{"acked", c.Acked, "applied + superseded + dead_lettered + lost + doubled + pending", c.Applied + c.Superseded + c.DeadLettered + c.Lost + c.Doubled + c.Pending},
		{"events - acked", c.Events - c.Acked, "absent + recovered + doubled_unacked", c.Absent + c.Recovered + c.DoubledUnacked},
		{"attempts", c.Attempts, "ok + refused + unanswered + unconnected", c.AttemptsOK + c.AttemptsRefused + c.AttemptsUnanswered + c.AttemptsUnconnected},
	}
	var bad []string
	for _, s := range sums {
		if s.want != s.got {
			bad = append(bad, fmt.Sprintf("%s is %d, %s is %d", s.whole, s.want, s.parts, s.got))
		}
	}
	if c.Suppressed > c.Undelivered {
		bad = append(bad, fmt.Sprintf("suppressed is %d, more than undelivered, which is %d", c.Suppressed, c.Undelivered))
	}
	return bad
}
