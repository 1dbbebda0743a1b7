package verdict_test

import (
	"fmt"
	"slices"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// oracle answers the same questions as the judge in the slowest and plainest way: it keeps every record, and asks each event all over again.
// It shares no code with the judge.
type oracle struct {
	header   ledger.Header
	end      *ledger.End
	events   map[uint32]ledger.Event
	dels     map[uint32]ledger.Delivery
	attempts map[uint32][]ledger.Attempt
	calls    []ledger.Call
	deads    []ledger.DeadLetter
}

func newOracle(h ledger.Header, records []any, end *ledger.End) *oracle {
	o := &oracle{header: h, end: end, events: map[uint32]ledger.Event{}, dels: map[uint32]ledger.Delivery{}, attempts: map[uint32][]ledger.Attempt{}}
	for _, r := range records {
		switch r := r.(type) {
		case ledger.Event:
			o.events[r.Number] = r
		case ledger.Delivery:
			o.dels[r.Number] = r
		case ledger.Attempt:
			o.attempts[r.Delivery] = append(o.attempts[r.Delivery], r)
		case ledger.Call:
			o.calls = append(o.calls, r)
		case ledger.DeadLetter:
			o.deads = append(o.deads, r)
		}
	}
	return o
}

// carriers are the deliveries of the given classes that carry an event.
func (o *oracle) carriers(event uint32, classes ...ledger.Class) (out []ledger.Delivery) {
	for _, d := range o.dels {
		if slices.Contains(classes, d.Class) && event >= d.First && event < d.First+uint32(d.Count) && d.Count > 0 {
			out = append(out, d)
		}
	}
	return out
}

func (o *oracle) isEvent(n uint32) bool {
	return o.events[n].Flags&ledger.Phantom == 0 && len(o.carriers(n, ledger.Genuine)) > 0
}

// effects counts the effects of an event by step.
func (o *oracle) effects(n uint32) map[uint8]int {
	m := map[uint8]int{}
	for _, c := range o.calls {
		if c.Event == n && c.Outcome == ledger.Took {
			m[c.Step]++
		}
	}
	return m
}

func (o *oracle) steps() (out []uint8) {
	for i := range o.header.Steps {
		if o.header.Expect.Steps>>i&1 == 1 {
			out = append(out, uint8(i))
		}
	}
	return out
}

func (o *oracle) done(n uint32) bool {
	took := o.effects(n)
	for _, step := range o.steps() {
		if took[step] == 0 {
			return false
		}
	}
	return true
}

func (o *oracle) twice(n uint32) bool {
	for _, count := range o.effects(n) {
		if count > 1 {
			return true
		}
	}
	return false
}

// delivered is the class of an event by its deliveries.
func (o *oracle) delivered(n uint32) string {
	ok, retry, silent, ended := false, false, false, false
	for _, d := range o.carriers(n, ledger.Genuine, ledger.DuplicateSameID, ledger.DuplicateNewID) {
		list := o.attempts[d.Number]
		if len(list) == 0 && o.end != nil && o.end.Interrupted && !o.disabled(d.Provider) {
			retry = true
		}
		for i, a := range list {
			ok = ok || a.Result == ledger.OK
			silent = silent || a.Result == ledger.Unanswered
			if i == len(list)-1 {
				retry = retry || a.Then == ledger.Retry && !o.disabled(d.Provider)
				final := a.Then == ledger.Ended || a.Then == ledger.Exhausted && o.header.Providers[d.Provider].OneShot
				ended = ended || a.Result == ledger.Refused && final
			}
		}
	}
	switch {
	case ok:
		return "acked"
	case retry:
		return "cut_off"
	case silent:
		return "unanswered"
	case ended:
		return "refused"
	default:
		return "undelivered"
	}
}

// disabled reports whether a provider gave its endpoint up.
func (o *oracle) disabled(provider uint8) bool {
	for n, list := range o.attempts {
		d := o.dels[n]
		genuine := d.Class == ledger.Genuine || d.Class == ledger.DuplicateSameID || d.Class == ledger.DuplicateNewID
		if genuine && d.Provider == provider && slices.ContainsFunc(list, func(a ledger.Attempt) bool { return a.Then == ledger.Disabled }) {
			return true
		}
	}
	return false
}

func (o *oracle) superseded(n uint32) bool {
	e := o.events[n]
	if e.Flags&ledger.Latest == 0 {
		return false
	}
	for m, other := range o.events {
		if m != n && other.Resource == e.Resource && other.Version >= e.Version && o.isEvent(m) && o.done(m) {
			return true
		}
	}
	return false
}

func (o *oracle) dead(n uint32) bool {
	if o.end == nil || !o.end.DeadLettersListed {
		return false
	}
	return slices.ContainsFunc(o.deads, func(d ledger.DeadLetter) bool { return d.Event == n && d.Claimed == d.Expected && d.Claimed != 0 })
}

// became is the class of an event by what happened in the pipeline.
func (o *oracle) became(n uint32) string {
	if o.delivered(n) != "acked" {
		switch {
		case o.twice(n):
			return "doubled_unacked"
		case len(o.effects(n)) > 0:
			return "recovered"
		}
		return "absent"
	}
	switch {
	case o.twice(n):
		return "doubled"
	case o.done(n):
		return "applied"
	case o.superseded(n):
		return "superseded"
	case o.dead(n):
		return "dead_lettered"
	case o.end == nil || o.end.Drain != ledger.Drained:
		return "pending"
	}
	return "lost"
}

// judged is everything that the oracle has an opinion about.
type judged struct {
	Counts        verdict.Counts
	Lost, Doubled []string
	ForgedEffects int64
}

func (o *oracle) judge() judged {
	var j judged
	j.Counts = o.recordCounts()
	c := &j.Counts
	tally := map[string]*int64{
		"acked": &c.Acked, "cut_off": &c.CutOff, "unanswered": &c.Unanswered, "refused": &c.Refused, "undelivered": &c.Undelivered,
		"applied": &c.Applied, "superseded": &c.Superseded, "dead_lettered": &c.DeadLettered, "lost": &c.Lost, "doubled": &c.Doubled, "pending": &c.Pending,
		"absent": &c.Absent, "recovered": &c.Recovered, "doubled_unacked": &c.DoubledUnacked,
	}
	for n := range uint32(len(o.events)) {
		if !o.isEvent(n) {
			o.other(n, &j)
			continue
		}
		c.Events++
		if o.events[n].Flags&ledger.Poison != 0 {
			c.Poison++
		}
		*tally[o.delivered(n)]++
		if o.delivered(n) == "undelivered" && o.unsent(n) {
			c.Suppressed++
		}
		became := o.became(n)
		*tally[became]++
		if became == "lost" {
			j.Lost = append(j.Lost, o.events[n].ID)
		}
		if became == "doubled" || became == "doubled_unacked" {
			j.Doubled = append(j.Doubled, o.events[n].ID)
		}
	}
	return j
}

func (o *oracle) unsent(n uint32) bool {
	for _, d := range o.carriers(n, ledger.Genuine, ledger.DuplicateSameID, ledger.DuplicateNewID) {
		if len(o.attempts[d.Number]) > 0 {
			return false
		}
	}
	return true
}

// other judges what is no event.
func (o *oracle) other(n uint32, j *judged) {
	if len(o.effects(n)) == 0 {
		return
	}
	if o.events[n].Flags&ledger.Phantom != 0 || len(o.carriers(n, ledger.Forged)) > 0 {
		j.ForgedEffects++
		return
	}
	j.Counts.Unexpected++
}

// recordCounts counts records, without regard to events.
func (o *oracle) recordCounts() (c verdict.Counts) {
	byClass, byResult, byOutcome := map[ledger.Class]int64{}, map[ledger.Result]int64{}, map[ledger.Outcome]int64{}
	for n, d := range o.dels {
		byClass[d.Class]++
		accepted := false
		for _, a := range o.attempts[n] {
			byResult[a.Result]++
			c.Attempts++
			accepted = accepted || a.Result == ledger.OK
		}
		if accepted && d.Class == ledger.Forged {
			c.ForgedAccepted++
		}
	}
	strangers := map[string]bool{}
	for _, call := range o.calls {
		byOutcome[call.Outcome]++
		if call.Outcome == ledger.Took && call.Event == ledger.None {
			strangers[call.ID] = true
		}
	}
	c.Deliveries, c.Unexpected = int64(len(o.dels)), int64(len(strangers))
	c.Duplicates, c.Forged, c.Malformed = byClass[ledger.DuplicateSameID]+byClass[ledger.DuplicateNewID], byClass[ledger.Forged], byClass[ledger.Malformed]
	c.AttemptsOK, c.AttemptsRefused = byResult[ledger.OK], byResult[ledger.Refused]
	c.AttemptsUnanswered, c.AttemptsUnconnected = byResult[ledger.Unanswered], byResult[ledger.Unconnected]
	c.Effects, c.Replayed, c.Stale, c.KeyConflicts = byOutcome[ledger.Took], byOutcome[ledger.Replayed], byOutcome[ledger.Stale], byOutcome[ledger.KeyConflict]
	return c
}

// want is the outcome that the five invariants that are always judged must have together, as far as it follows from the counts alone.
func (j judged) want() verdict.Outcome {
	c := j.Counts
	if c.Lost+c.Doubled+c.DoubledUnacked+c.Unexpected+c.ForgedAccepted+j.ForgedEffects > 0 {
		return verdict.Fail
	}
	if c.Acked == 0 || c.Effects == 0 || c.Pending > 0 {
		return verdict.Unknown
	}
	return verdict.Pass
}

// String helps to read a failure.
func (j judged) String() string { return fmt.Sprintf("%+v", j.Counts) }
