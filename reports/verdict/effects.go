package verdict

import (
	"fmt"
	"math/bits"

	"floodproof/reports/ledger"
)

// hintNotDrained is for what a later call could still change.
const hintNotDrained = "calls could still have come after the end of the run; see drained"

// noLoss: what was acked took effect.
type noLoss struct{}

func (noLoss) Name() string { return "no-loss" }

func (noLoss) Check(h *History) (Finding, error) {
	c, f := h.counts, none(h.counts.Lost, "events")
	f.Observed = fmt.Sprintf("%d lost of %d acked", c.Lost, c.Acked)
	switch {
	case c.Lost > 0:
		for _, n := range h.picks.lost {
			f.Examples = append(f.Examples, h.describeLost(n))
		}
		f.Hint = "follow one of the examples through the ledger (floodproof report RUN --format jsonl): was it acked before the queue's write was durable, " +
			"settled before its effect, or taken for a duplicate of an event that never took effect?"
	case c.Acked == 0:
		return f.unknown("no event was acked, so that none could be lost", "look at the answers of the receiver: address, path, secrets, and the statuses under counts"), nil
	case c.Pending > 0:
		return f.unknown(fmt.Sprintf("%d of %d acked events are pending", c.Pending, c.Acked), hintNotDrained), nil
	}
	return f, nil
}

// describeLost is a lost event's id and, where that is not plain, what exactly is missing.
func (h *History) describeLost(n uint32) string {
	id, e := h.names.of(n), h.event(n)
	took, _ := h.took(n, e)
	missing := h.expectedSteps() &^ took
	switch {
	case e.flags&ledger.Poison != 0 && h.deadListed():
		return id + " (poison, not proved in the dead-letter list)"
	case e.flags&ledger.Poison != 0:
		return id + " (poison, and the target lists no dead letters)"
	case bits.OnesCount64(h.expectedSteps()) > 1:
		return fmt.Sprintf("%s (step %s missing)", id, h.step(missing))
	default:
		return id
	}
}

// noDoubleEffect: nothing happened twice.
type noDoubleEffect struct{}

func (noDoubleEffect) Name() string { return "no-double-effect" }

func (noDoubleEffect) Check(h *History) (Finding, error) {
	c := h.counts
	f := none(c.Doubled+c.DoubledUnacked, "events")
	f.Observed = fmt.Sprintf("%d doubled of %d acked, %d of %d not acked", c.Doubled, c.Acked, c.DoubledUnacked, c.Events-c.Acked)
	switch {
	case f.Outcome == Fail:
		for _, n := range h.picks.doubled {
			f.Examples = append(f.Examples, h.describeDoubled(n))
		}
		f.Hint = "look at what lies between the two effects of an example in the ledger: a second delivery (deduplicate by the canonical id, for as long as providers retry) " +
			"or a worker that died after its effect (send an Idempotency-Key, or look before you act)"
	case c.Effects == 0:
		return f.unknown("no effect reached the sink, so that none could be double", "does the pipeline know the sink's address (FLOODPROOF_SINK)?"), nil
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	}
	return f, nil
}

// describeDoubled is a doubled event's id and, where steps have names, which one.
func (h *History) describeDoubled(n uint32) string {
	id := h.names.of(n)
	_, twice := h.took(n, h.event(n))
	if bits.OnesCount64(h.expectedSteps()) > 1 || twice&1 == 0 {
		return fmt.Sprintf("%s (step %s more than once)", id, h.step(twice))
	}
	return id
}

// noUnexpectedEffect: nothing happened that nobody sent.
type noUnexpectedEffect struct{}

func (noUnexpectedEffect) Name() string { return "no-unexpected-effect" }

func (noUnexpectedEffect) Check(h *History) (Finding, error) {
	c, f := h.counts, none(h.counts.Unexpected, "ids")
	f.Observed = fmt.Sprintf("%d ids took effect that were never sent, %d effects in all", c.Unexpected, c.Effects)
	switch {
	case c.Unexpected > 0:
		f.Examples = append(h.ids(h.picks.unexpected), h.strangerIDs...)
		f.Examples = f.Examples[:min(len(f.Examples), maxExamples)]
		f.Hint = "does the pipeline report the provider's canonical id, percent-encoded (floodproof list providers)? Or is a pipeline of an earlier run still alive?"
	case c.Events == 0:
		return f.unknown("no event was sent", "see delivered and the harness notes: the load never began"), nil
	case c.Effects == 0:
		return f.unknown("no effect reached the sink", "does the pipeline know the sink's address (FLOODPROOF_SINK)?"), nil
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	}
	return f, nil
}

// noForgery: what the provider's rule refuses was refused, and changed nothing.
type noForgery struct{}

func (noForgery) Name() string { return "no-forgery" }

func (noForgery) Check(h *History) (Finding, error) {
	c := h.counts
	f := none(c.ForgedAccepted+h.forgedEffects, "forgeries")
	f.Observed = fmt.Sprintf("%d of %d forged deliveries answered with success, %d ids that only forgeries carried took effect", c.ForgedAccepted, c.Forged, h.forgedEffects)
	switch {
	case f.Outcome == Fail:
		f.Examples = h.forgedExamples()
		f.Hint = "does the receiver verify the signature over the raw bytes, with the age where the provider's rule has one, before it answers and before it remembers the id?"
	case c.Events == 0:
		return f.unknown("no event was sent", "see the harness notes: the load never began"), nil
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	case c.Forged == 0:
		f.Observed = "no forged delivery was sent"
	}
	return f, nil
}

func (h *History) forgedExamples() []string {
	var out []string
	for _, n := range h.picks.forgedAccepted {
		out = append(out, h.names.of(n)+" (answered with success)")
	}
	for _, n := range h.picks.forgedEffects {
		out = append(out, h.names.of(n)+" (took effect)")
	}
	return out[:min(len(out), maxExamples)]
}
