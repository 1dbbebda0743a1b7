package verdict

import "fmt"

// deadLettersAccounted: nothing lies in the dead-letter list that could have worked.
//
// A dead letter that fits no event may be one of the malformed deliveries, which are signed and may be kept; as many as were sent are taken for those.
type deadLettersAccounted struct{ allowed int }

func (deadLettersAccounted) Name() string { return "dead-letters-accounted" }

func (d deadLettersAccounted) Check(h *History) (Finding, error) {
	strangers := max(0, h.deadStrangers-h.counts.Malformed)
	f := none(0, "dead letters")
	f.Limit, f.LimitValue = fmt.Sprintf("<= %d", d.allowed), new(float64(d.allowed))
	switch {
	case h.counts.Events == 0:
		f.Value = nil
		return f.unknown("no event was sent", "see the harness notes: the load never began"), nil
	case !h.deadListed():
		f.Value = nil
		return f.unknown("the target showed no dead-letter list", "give --dead-letters-url or --dead-letters-cmd"), nil
	}
	f.Value = new(float64(h.nonPoisonDead + strangers))
	f.Observed = fmt.Sprintf("%d dead letters are not poison, %d more fit nothing that was sent; %d events are dead-lettered with proof, %d entries show another payload or none",
		h.nonPoisonDead, strangers, h.counts.DeadLettered, h.deadMismatched)
	if h.nonPoisonDead+strangers > int64(d.allowed) {
		f.Outcome = Fail
		f.Examples = h.ids(h.picks.dead)
		if strangers > 0 {
			f.Examples = append(f.Examples, h.picks.deadIDs.texts...)
		}
		f.Examples = f.Examples[:min(len(f.Examples), maxExamples)]
		f.Hint = "the reason beside each entry says what failed; most often the retries ran out while the downstream was away, so that more attempts or a longer back-off would have saved it"
	}
	return f, nil
}
