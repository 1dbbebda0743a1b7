package crosscheck

import (
	"fmt"
	"slices"
	"time"
)

const (
	// lateness is the p99 of floodproof's own lateness up to which its latencies are worth anything, the same as in a verdict.
	lateness = 10 * time.Millisecond
	// noise is the least difference of two p99 that is worth a word, in itself and as a share of the larger.
	noise      = time.Millisecond
	noiseShare = 0.1
	// noiseAlone is that share where there is a single round, which says nothing about how rounds differ.
	noiseAlone = 0.2
)

// Effect is what makes two figures differ.
type Effect string

const (
	// NoAnswers: nobody answered, so that there is nothing to compare.
	NoAnswers Effect = "no answers"
	// GeneratorLate: floodproof's own generator was late though it had slots free. Its latencies mean nothing.
	GeneratorLate Effect = "floodproof was late"
	// CoordinatedOmission: vegeta had no worker free, sent late, and began its clock only then.
	CoordinatedOmission Effect = "coordinated omission"
	// LateSender: vegeta had workers free, and yet sent late and began its clock only then.
	LateSender Effect = "late sender"
	// Unsteady: the two differ by the same clock, but no more than the rounds of one of them do.
	Unsteady Effect = "unsteady target"
	// Different: the two differ by the same clock: the target answered them differently.
	Different Effect = "different answers"
	// Agree: by the same clock the two say the same, up to noise.
	Agree Effect = "agreement"
)

// Finding is one effect in plain words.
type Finding struct {
	Effect Effect `json:"effect"`
	Text   string `json:"text"`
}

// Meaningless reports whether floodproof's latencies mean nothing: it was late itself, or nobody answered.
func (r *Result) Meaningless() bool {
	return r.Floodproof.Late.At(99) > lateness || r.Floodproof.Answered() == 0
}

// Findings explains where the two differ by more than noise.
func (r *Result) Findings() []Finding {
	ours, theirs := &r.Floodproof, &r.Vegeta
	if ours.Answered() == 0 && theirs.Answered() == 0 {
		return []Finding{{NoAnswers, "Nobody answered, so there are no latencies to compare. Is something listening at this address?"}}
	}
	var found []Finding
	if f, ok := r.omission(); ok {
		found = append(found, f)
	}
	if late := ours.Late.At(99); late > lateness {
		return append(found, Finding{GeneratorLate, fmt.Sprintf(
			"floodproof itself was late: its p99 of sending is %s behind the due time though slots were free (limit %s). The generator got too little processor, "+
				"so its latencies above mean nothing. Lower --rate, or stop what else runs on this machine.", show(late), show(lateness))})
	}
	return append(found, r.sameClock())
}

// sameClock compares the two by the due times.
func (r *Result) sameClock() Finding {
	ours, theirs := r.Floodproof.Due.At(99), r.Vegeta.Due.At(99)
	figures := fmt.Sprintf("p99 %s for floodproof and %s for vegeta", show(ours), show(theirs))
	share := noiseShare
	if r.Rounds == 1 {
		share = noiseAlone
	}
	switch diff, apart := (ours - theirs).Abs(), r.spread(); {
	case diff <= max(noise, time.Duration(share*float64(max(ours, theirs)))):
		return Finding{Agree, fmt.Sprintf("From the due times the two agree: %s.", figures)}
	case diff <= apart:
		return Finding{Unsteady, fmt.Sprintf(
			"From the due times the two differ (%s), but rounds of one and the same generator differ by %s: the target, or this machine, was not the same all the time. "+
				"Nothing follows from that; more --rounds may tell.", figures, show(apart))}
	default:
		return Finding{Different, fmt.Sprintf(
			"From the due times the two differ (%s) by more than the rounds of either do (%s). The clock is the same, so the target answered them differently: "+
				"compare the errors, and try more --rounds.", figures, show(apart))}
	}
}

// omission is what vegeta's own clock leaves out. Both figures are of the same requests, so that there is no noise between them.
func (r *Result) omission() (Finding, bool) {
	v := &r.Vegeta
	own, due := v.Own.At(99), v.Due.At(99)
	if due-own <= max(noise, time.Duration(noiseShare*float64(due))) {
		return Finding{}, false
	}
	told := fmt.Sprintf("and began its clock only then. It reports a p99 of %s; from their due times the same requests took %s.", show(own), show(due))
	if v.Busiest >= r.Slots {
		return Finding{CoordinatedOmission, fmt.Sprintf(
			"Coordinated omission: at times all %d workers of vegeta waited for answers, so it sent up to %s late, %s The target held the sender back, and the wait is in "+
				"nobody's latency.", r.Slots, show(v.Late.At(100)), told)}, true
	}
	return Finding{LateSender, fmt.Sprintf(
		"Late sender: vegeta had workers free (at most %d of %d were busy), yet sent up to %s late, %s This machine is too slow or too busy for that rate.",
		v.Busiest, r.Slots, show(v.Late.At(100)), told)}, true
}

// spread is how far the p99 of the rounds of one side lie apart, of the side where that is more.
func (r *Result) spread() time.Duration {
	var apart time.Duration
	for _, s := range []*Side{&r.Floodproof, &r.Vegeta} {
		if len(s.DueP99s) > 0 {
			apart = max(apart, slices.Max(s.DueP99s)-slices.Min(s.DueP99s))
		}
	}
	return apart
}

// show is a duration to two or three digits.
func show(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	default:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}
