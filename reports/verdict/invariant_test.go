package verdict_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// fixture is a small ledger and what one invariant must say about it.
type fixture struct {
	invariant string
	name      string
	build     func(b *book)
	outcome   verdict.Outcome
	observed  string // a part of the text
	examples  []string
}

func expectLatency(of string, percentile float64, limit time.Duration) func(b *book) {
	return func(b *book) {
		b.header.Expect.Latency = []ledger.LatencyLimit{{Of: of, Percentile: percentile, Limit: limit}}
	}
}

// goodWith adds good events around a special one.
func goodWith(special func(b *book)) func(b *book) {
	return func(b *book) { b.good(20); special(b) }
}

func notDrained(b *book) { b.end.Drain, b.end.DrainWhy = ledger.NotDrained, "limit of 30s reached" }

var lossFixtures = []fixture{
	{"no-loss", "all applied", func(b *book) { b.good(20) }, verdict.Pass, "0 lost of 20 acked", nil},
	{"no-loss", "one without effect", goodWith(func(b *book) { b.ack(b.event("gone", 0), s) }), verdict.Fail, "1 lost of 21 acked", []string{"gone"}},
	{"no-loss", "a step missing", func(b *book) {
		b.header.Steps, b.header.Expect.Steps = []string{"", "charge", "email"}, 0b110
		e := b.event("half", 0)
		b.ack(e, s)
		b.step(e, 2*s, 1)
	}, verdict.Fail, "1 lost of 1 acked", []string{"half (step email missing)"}},
	{"no-loss", "the same version superseded only where declared", func(b *book) {
		for i, flags := range []ledger.EventFlags{0, ledger.Latest} {
			b.ack(b.eventOf(ledger.Event{ID: fmt.Sprintf("old_%d", i), Resource: 7, Version: 1, Flags: flags}), s)
		}
		e := b.eventOf(ledger.Event{ID: "new", Resource: 7, Version: 2})
		b.ack(e, 2*s)
		b.effect(e, 3*s)
	}, verdict.Fail, "1 lost of 3 acked", []string{"old_0"}},
	{"no-loss", "superseded by a tie, never by itself or by an older version", func(b *book) {
		for _, e := range []ledger.Event{{ID: "tie", Resource: 1, Version: 5}, {ID: "alone", Resource: 2, Version: 5}, {ID: "newer", Resource: 1, Version: 6}} {
			e.Flags = ledger.Latest
			b.ack(b.eventOf(e), s)
		}
		e := b.eventOf(ledger.Event{ID: "other", Resource: 1, Version: 5})
		b.ack(e, s)
		b.effect(e, 2*s)
	}, verdict.Fail, "2 lost of 4 acked", []string{"alone", "newer"}},
	{"no-loss", "a forgery supersedes nothing", func(b *book) {
		b.ack(b.eventOf(ledger.Event{ID: "old", Resource: 7, Version: 1, Flags: ledger.Latest}), s)
		e := b.eventOf(ledger.Event{ID: "forged", Resource: 7, Version: 2, Flags: ledger.Latest})
		b.try(b.deliver(ledger.Forged, stripe, e, 1), s, ms, ledger.Refused, ledger.Ended)
		b.effect(e, 3*s)
	}, verdict.Fail, "1 lost of 1 acked", []string{"old"}},
	{"no-loss", "poison proved in the dead-letter list", goodWith(func(b *book) {
		e := b.event("poison", ledger.Poison)
		b.ack(e, s)
		b.put(ledger.DeadLetter{Event: e, Claimed: 9, Expected: 9})
	}), verdict.Pass, "0 lost of 21 acked", nil},
	{"no-loss", "poison with another hash", func(b *book) {
		e := b.event("poison", ledger.Poison)
		b.ack(e, s)
		b.put(ledger.DeadLetter{Event: e, Claimed: 9, Expected: 8})
	}, verdict.Fail, "1 lost", []string{"poison (poison, not proved in the dead-letter list)"}},
	{"no-loss", "no hash is no proof", func(b *book) {
		e := b.event("quiet", 0)
		b.ack(e, s)
		b.put(ledger.DeadLetter{Event: e})
	}, verdict.Fail, "1 lost", []string{"quiet"}},
	{"no-loss", "dead letters of a target that lists none", func(b *book) {
		b.end.DeadLettersListed = false
		e := b.event("poison", ledger.Poison)
		b.ack(e, s)
		b.put(ledger.DeadLetter{Event: e, Claimed: 9, Expected: 9})
	}, verdict.Fail, "1 lost", []string{"poison (poison, and the target lists no dead letters)"}},
	{"no-loss", "nothing acked", func(b *book) {
		b.try(b.deliver(ledger.Genuine, stripe, b.event("refused", 0), 1), s, ms, ledger.Refused, ledger.Exhausted)
	}, verdict.Unknown, "no event was acked", nil},
	{"no-loss", "not drained", func(b *book) { notDrained(b); b.ack(b.event("slow", 0), s) }, verdict.Unknown, "1 of 1 acked events are pending", nil},
	{"no-loss", "no end record", func(b *book) { b.good(20); b.end = nil }, verdict.Unknown, "not whole", nil},

	{"no-double-effect", "replays are no effects", goodWith(func(b *book) {
		b.put(ledger.Call{At: 5 * s, Event: 0, Outcome: ledger.Replayed, Fault: ledger.None})
	}), verdict.Pass, "0 doubled of 20 acked", nil},
	{"no-double-effect", "twice", goodWith(func(b *book) { b.effect(3, 5*s) }), verdict.Fail, "1 doubled of 20 acked", []string{"good_3"}},
	{"no-double-effect", "one step twice, another missing", func(b *book) {
		b.header.Steps, b.header.Expect.Steps = []string{"", "charge", "email"}, 0b110
		e := b.event("half", 0)
		b.ack(e, s)
		b.step(e, 2*s, 1)
		b.step(e, 3*s, 1)
	}, verdict.Fail, "1 doubled of 1 acked", []string{"half (step charge more than once)"}},
	{"no-double-effect", "twice and never acked", goodWith(func(b *book) {
		e := b.event("secret", 0)
		b.try(b.deliver(ledger.Genuine, stripe, e, 1), s, 10*s, ledger.Unanswered, ledger.Exhausted)
		b.effect(e, 2*s)
		b.effect(e, 3*s)
	}), verdict.Fail, "1 of 1 not acked", []string{"secret"}},
	{"no-double-effect", "no effect at all", func(b *book) { b.ack(b.event("gone", 0), s) }, verdict.Unknown, "no effect", nil},
	{"no-double-effect", "not drained", func(b *book) { b.good(3); notDrained(b) }, verdict.Unknown, "so far", nil},

	{"no-unexpected-effect", "all known", func(b *book) { b.good(20) }, verdict.Pass, "0 ids", nil},
	{"no-unexpected-effect", "ids from nowhere, each once", goodWith(func(b *book) {
		for _, id := range []string{"x\x1b[2J", "y", "y"} {
			b.put(ledger.Call{At: s, Event: ledger.None, ID: id, Outcome: ledger.Took, Fault: ledger.None})
		}
		b.put(ledger.Call{At: s, Event: ledger.None, ID: "z", Outcome: ledger.Failed, Fault: ledger.None})
	}), verdict.Fail, "2 ids", []string{`x\x1b[2J`, "y"}},
	{"no-unexpected-effect", "planned and never sent", goodWith(func(b *book) { b.effect(b.event("unsent", 0), s) }), verdict.Fail, "1 ids", []string{"unsent"}},
	{"no-unexpected-effect", "nothing sent", func(*book) {}, verdict.Unknown, "no event was sent", nil},

	{"no-forgery", "refused", goodWith(func(b *book) {
		p := b.event("phantom", ledger.Phantom)
		b.try(b.deliver(ledger.Forged, stripe, p, 1), s, ms, ledger.Refused, ledger.Ended)
	}), verdict.Pass, "0 of 1 forged", nil},
	{"no-forgery", "none sent", func(b *book) { b.good(20) }, verdict.Pass, "no forged delivery was sent", nil},
	{"no-forgery", "accepted", goodWith(func(b *book) {
		b.try(b.deliver(ledger.Forged, stripe, 4, 1), s, ms, ledger.OK, ledger.Settled)
	}), verdict.Fail, "1 of 1 forged", []string{"good_4 (answered with success)"}},
	{"no-forgery", "a phantom and a forged-only id took effect", goodWith(func(b *book) {
		for i, flags := range []ledger.EventFlags{ledger.Phantom, 0} {
			e := b.event(fmt.Sprintf("fake_%d", i), flags)
			b.try(b.deliver(ledger.Forged, stripe, e, 1), s, ms, ledger.Refused, ledger.Ended)
			b.effect(e, 2*s)
		}
	}), verdict.Fail, "2 ids", []string{"fake_0 (took effect)", "fake_1 (took effect)"}},
	{"no-forgery", "a real event that was forged before may take effect", goodWith(func(b *book) {
		e := b.event("real", 0)
		b.try(b.deliver(ledger.Forged, stripe, e, 1), s, ms, ledger.Refused, ledger.Ended)
		b.ack(e, 2*s)
		b.effect(e, 3*s)
	}), verdict.Pass, "0 of 1 forged", nil},
	{"no-forgery", "nothing sent", func(*book) {}, verdict.Unknown, "no event", nil},
}

var wholeFixtures = []fixture{
	{"ledger-complete", "whole", func(b *book) { b.good(2) }, verdict.Pass, "end record", nil},
	{"ledger-complete", "cut", func(b *book) { b.good(2); b.end = nil }, verdict.Unknown, "no end record", nil},
	{"ledger-complete", "contradictions", func(b *book) {
		b.good(1)
		b.put(ledger.Event{Number: 0, ID: "again"})
		b.put(ledger.Attempt{Delivery: 77, Try: 1, Result: ledger.OK, Then: ledger.Settled})
		b.put(ledger.Call{Event: 12, Outcome: ledger.Took, Fault: 3})
	}, verdict.Unknown, "4 records", []string{
		"event 0 is introduced twice",
		"an attempt belongs to delivery 77, which was not introduced before it",
		"an effect at 0.000 s is for event 12 step 0, which was not introduced before it",
		"a call was touched by fault 3, which was never injected",
	}},
	{"ledger-complete", "numbers out of all proportion", func(b *book) {
		b.good(1)
		for i := range uint32(1000) {
			b.put(ledger.Event{Number: i << 20, ID: "sparse"})
		}
	}, verdict.Unknown, "records contradict", nil},

	{"drained", "drained", func(b *book) { b.good(2) }, verdict.Pass, "drained after 40s", nil},
	{"drained", "limit reached", func(b *book) { b.good(2); b.ack(b.event("slow", 0), s); notDrained(b) }, verdict.Unknown, "1 acked events are pending: limit of 30s reached", nil},
	{"drained", "no end record", func(b *book) { b.good(2); b.end = nil }, verdict.Unknown, "does not say", nil},

	{"delivered", "all", func(b *book) { b.header.Expect.Delivered = true; b.good(3) }, verdict.Pass, "0 of 3 events", nil},
	{"delivered", "exhausted, never sent, refused", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.try(b.deliver(ledger.Genuine, stripe, b.event("exhausted", 0), 1), s, ms, ledger.Refused, ledger.Exhausted)
		b.deliver(ledger.Genuine, stripe, b.event("unsent", 0), 1)
		b.try(b.deliver(ledger.Genuine, stripe, b.event("refused", 0), 1), s, ms, ledger.Refused, ledger.Ended)
	}, verdict.Fail, "3 of 6 events", []string{"exhausted", "unsent", "refused"}},
	{"delivered", "a ledger that was cut", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.deliver(ledger.Genuine, stripe, b.event("unsent", 0), 1)
		b.end = nil
	}, verdict.Unknown, "1 of 4 events refused or undelivered so far", nil},
	{"delivered", "refused in a ledger that was cut", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.try(b.deliver(ledger.Genuine, stripe, b.event("refused", 0), 1), s, ms, ledger.Refused, ledger.Ended)
		b.end = nil
	}, verdict.Fail, "1 of 4 events refused or undelivered", []string{"refused"}},
	{"delivered", "exhausted in a ledger that was cut", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.try(b.deliver(ledger.Genuine, stripe, b.event("exhausted", 0), 1), s, ms, ledger.Refused, ledger.Exhausted)
		b.end = nil
	}, verdict.Fail, "1 of 4 events refused or undelivered", []string{"exhausted"}},
	{"delivered", "one-shot providers on their own", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.try(b.deliver(ledger.Genuine, github, b.eventOf(ledger.Event{ID: "gh", Provider: github}), 1), s, ms, ledger.Refused, ledger.Ended)
	}, verdict.Pass, "0 of 3 events refused or undelivered; of providers that never retry, 1 of 1 are gone", nil},
	{"delivered", "a provider that retries answers only", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.try(b.deliver(ledger.Genuine, 0, b.event("evt_unheard", 0), 1), s, 0, ledger.Unconnected, ledger.Ended)
	}, verdict.Pass, "0 of 4 events refused or undelivered; 1 are gone that could not connect", nil},
	{"delivered", "a refusal by a provider that retries answers only", func(b *book) {
		b.header.Expect.Delivered = true
		b.good(3)
		b.try(b.deliver(ledger.Genuine, 0, b.event("evt_refused", 0), 1), s, 0, ledger.Refused, ledger.Ended)
	}, verdict.Fail, "1 of 4 events refused or undelivered", nil},
	{"delivered", "only one-shot providers", func(b *book) {
		b.header.Expect.Delivered = true
		b.try(b.deliver(ledger.Genuine, github, b.eventOf(ledger.Event{ID: "gh", Provider: github}), 1), s, ms, ledger.OK, ledger.Settled)
	}, verdict.Unknown, "no event was of a provider that retries", nil},

	{"availability", "enough", func(b *book) { b.header.Expect.Availability = 0.95; availabilityOf(b, 95) }, verdict.Pass, "95 %: 95 of 100", nil},
	{"availability", "one too few", func(b *book) { b.header.Expect.Availability = 0.95; availabilityOf(b, 94) }, verdict.Fail, "94 %: 94 of 100", nil},
	{"availability", "no attempt", func(b *book) { b.header.Expect.Availability = 0.95 }, verdict.Unknown, "no attempt", nil},
	{"availability", "no share", func(b *book) { b.header.Expect.Availability = 95; b.good(1) }, verdict.Unknown, "not a share", nil},
}

// availabilityOf makes 100 genuine attempts of which ok succeed, and a duplicate and a forgery that do not count.
func availabilityOf(b *book, ok int) {
	b.good(ok)
	for i := range 100 - ok {
		b.try(b.deliver(ledger.Genuine, stripe, b.event(fmt.Sprintf("bad_%d", i), 0), 1), s, ms, ledger.Unconnected, ledger.Exhausted)
	}
	b.try(b.deliver(ledger.DuplicateSameID, stripe, 0, 1), s, ms, ledger.Refused, ledger.Exhausted)
	b.try(b.deliver(ledger.Forged, stripe, 0, 1), s, ms, ledger.Refused, ledger.Ended)
}

func allowDead(b *book, n int) { b.header.Expect.DeadLettersAccounted = &n }

func dead(b *book, flags ledger.EventFlags, id string) {
	e := b.event(id, flags)
	b.ack(e, s)
	b.put(ledger.DeadLetter{Event: e, Claimed: 9, Expected: 9})
}

var deadFixtures = []fixture{
	{"dead-letters-accounted", "poison only", goodWith(func(b *book) { allowDead(b, 0); dead(b, ledger.Poison, "p") }), verdict.Pass, "0 dead letters are not poison", nil},
	{"dead-letters-accounted", "one allowed", goodWith(func(b *book) { allowDead(b, 1); dead(b, 0, "d") }), verdict.Pass, "1 dead letters are not poison", nil},
	{"dead-letters-accounted", "one too many", goodWith(func(b *book) { allowDead(b, 0); dead(b, 0, "d") }), verdict.Fail, "1 dead letters are not poison", []string{"d"}},
	{"dead-letters-accounted", "malformed deliveries may be kept, others not", goodWith(func(b *book) {
		allowDead(b, 0)
		b.try(b.deliver(ledger.Malformed, stripe, ledger.None, 0), s, ms, ledger.OK, ledger.Settled)
		b.put(ledger.DeadLetter{Event: ledger.None, ID: "?1"})
		b.put(ledger.DeadLetter{Event: ledger.None, ID: "?2"})
	}), verdict.Fail, "1 more fit nothing", []string{"?1", "?2"}},
	{"dead-letters-accounted", "no list", goodWith(func(b *book) { allowDead(b, 0); b.end.DeadLettersListed = false }), verdict.Unknown, "no dead-letter list", nil},
	{"dead-letters-accounted", "nothing sent", func(b *book) { allowDead(b, 0) }, verdict.Unknown, "no event", nil},
}

// recoverBy is a run with a fault healed at 10 s, an event that it held back until done, and one acked later that waits a moment.
func recoverBy(done time.Duration) func(b *book) {
	return func(b *book) {
		b.header.Expect.Recovery = 5 * s
		b.good(20)
		b.fault(0, ledger.Worker, 5*s, 10*s)
		e := b.event("held", 0)
		b.ack(e, 6*s)
		b.effect(e, done)
		later := b.event("later", 0)
		b.ack(later, 11*s)
		b.effect(later, 11*s+500*ms)
	}
}

var recoveryFixtures = []fixture{
	{"recovery", "in time", recoverBy(12 * s), verdict.Pass, "2s from the last heal", nil},
	{"recovery", "at once", recoverBy(9 * s), verdict.Pass, "0s from the last heal", nil},
	{"recovery", "too late", recoverBy(16 * s), verdict.Fail, "6s from the last heal", nil},
	{"recovery", "acked just before the heal", func(b *book) {
		recoverBy(9 * s)(b)
		e := b.event("last", 0)
		b.ack(e, 9900*ms)
		b.effect(e, 10*s+300*ms)
	}, verdict.Pass, "300ms from the last heal", nil},
	{"recovery", "a later backlog is another matter", func(b *book) {
		recoverBy(12 * s)(b)
		e := b.event("much later", 0)
		b.ack(e, 15*s)
		b.effect(e, 30*s)
	}, verdict.Pass, "2s from the last heal", nil},
	{"recovery", "a queue of newer events behind it", func(b *book) {
		recoverBy(12 * s)(b)
		for i := range 10 {
			e := b.event(fmt.Sprintf("queued_%d", i), 0)
			at := 10*s + time.Duration(i)*s
			b.ack(e, at)
			b.effect(e, at+3*s)
		}
	}, verdict.Fail, "12s from the last heal", nil},
	{"recovery", "no fault", func(b *book) { b.header.Expect.Recovery = 5 * s; b.good(3) }, verdict.Unknown, "no fault was healed", nil},
	{"recovery", "nothing acked", func(b *book) { b.header.Expect.Recovery = 5 * s; b.fault(0, ledger.Worker, s, 2*s) }, verdict.Unknown, "no event was acked", nil},
	{"recovery", "still pending within the limit", func(b *book) {
		recoverBy(12 * s)(b)
		notDrained(b)
		b.end.At = 13 * s
		b.ack(b.event("stuck", 0), 9*s)
	}, verdict.Unknown, "was not empty 3s after", nil},
	{"recovery", "still pending beyond the limit", func(b *book) {
		recoverBy(12 * s)(b)
		notDrained(b)
		b.ack(b.event("stuck", 0), 9*s)
	}, verdict.Fail, "was not empty 1m30s after", nil},
}

var exercisedFixtures = []fixture{
	{"faults-exercised", "each side met in its own way", func(b *book) {
		b.good(20) // due at 0 to 190 ms, acked after 5 ms, applied after 20 ms
		b.fault(0, ledger.Worker, 10*ms, 100*ms)
		b.fault(1, ledger.Receiver, 52*ms, 53*ms)
		b.fault(2, ledger.Downstream, 0, s)
		b.put(ledger.Call{At: 60 * ms, Event: 1, Outcome: ledger.Throttled, Fault: 2})
		b.put(ledger.Fault{Number: 3, Step: 3, Side: ledger.Broker, Phase: ledger.NotApplicable, Name: "broker.kill", Note: "embedded"})
	}, verdict.Pass, "3 of 3 faults done, 1 fault not exercised", nil},
	{"faults-exercised", "all are required", func(b *book) {
		b.header.Expect.RequireFaults = true
		b.good(20)
		b.fault(0, ledger.Worker, 10*ms, 100*ms)
		b.put(ledger.Fault{Number: 1, Step: 1, Side: ledger.Broker, Phase: ledger.NotApplicable, Name: "broker.kill", Note: "embedded"})
	}, verdict.Unknown, "1 of 1 fault done, 1 fault not exercised", []string{"broker.kill: not-applicable (embedded)"}},
	{"faults-exercised", "all are required, and were exercised", func(b *book) {
		b.header.Expect.RequireFaults = true
		b.good(20)
		b.fault(0, ledger.Worker, 10*ms, 100*ms)
	}, verdict.Pass, "1 of 1 fault done", nil},
	{"faults-exercised", "one repetition met is enough", func(b *book) {
		b.good(20)
		for i, at := range []time.Duration{50 * ms, 50 * s} {
			b.put(ledger.Fault{At: at, Number: uint32(i), Side: ledger.Disk, Phase: ledger.Begin, Name: "disk.full"})
			b.put(ledger.Fault{At: at + s, Number: uint32(i), Side: ledger.Disk, Phase: ledger.Heal, Name: "disk.full"})
		}
	}, verdict.Pass, "2 of 2 faults done", nil},
	{"faults-exercised", "nobody was there", func(b *book) {
		b.good(20)
		b.fault(0, ledger.Worker, 6*ms, 8*ms) // in force only while one event is in work, and that counts
		b.fault(1, ledger.Worker, 50*s, 51*s)
		b.fault(2, ledger.Receiver, 50*s, 51*s)
		b.fault(3, ledger.Downstream, 0, s)
	}, verdict.Unknown, "1 of 4 faults done, 3 vacuous", []string{"test.fault on it at 50.0 s: vacuous", "test.fault on it at 50.0 s: vacuous", "test.fault on it at 0.0 s: vacuous"}},
	{"faults-exercised", "the fault itself met nobody, whoever was under way", func(b *book) {
		b.good(20)
		b.fault(0, ledger.Ingress, 10*ms, 100*ms)
		b.put(ledger.Fault{At: 100 * ms, Number: 0, Side: ledger.Ingress, Phase: ledger.Unmet, Name: "test.fault", Target: "it"})
	}, verdict.Unknown, "1 vacuous", []string{"test.fault on it at 0.0 s: vacuous"}},
	{"faults-exercised", "a dead letter does not wait for a worker", func(b *book) {
		dead(b, ledger.Poison, "p")
		b.fault(0, ledger.Worker, 50*s, 51*s)
	}, verdict.Unknown, "1 vacuous", []string{"test.fault on it at 49.0 s: vacuous"}},
	{"faults-exercised", "broken and never healed", func(b *book) {
		b.good(20)
		b.put(ledger.Fault{At: 50 * ms, Number: 0, Side: ledger.Receiver, Phase: ledger.Broken, Name: "receiver.kill", Note: "no such process"})
		b.put(ledger.Fault{At: 50 * ms, Number: 1, Step: 1, Side: ledger.Disk, Phase: ledger.Begin, Name: "disk.full"})
	}, verdict.Unknown, "0 of 2 faults done, 2 failed", []string{"receiver.kill at 0.1 s: failed (no such process)", "disk.full at 0.1 s: failed (it was never healed)"}},
}

func TestInvariantFixtures(t *testing.T) {
	seen := map[string]map[verdict.Outcome]bool{}
	for _, fx := range fixtures() {
		name := fx.invariant
		if strings.HasPrefix(name, "latency-") {
			name = "latency"
		}
		if seen[name] == nil {
			seen[name] = map[verdict.Outcome]bool{}
		}
		seen[name][fx.outcome] = true
		t.Run(fx.invariant+"/"+fx.name, func(t *testing.T) {
			b := newBook()
			fx.build(b)
			f := finding(t, judge(t, b), fx.invariant)
			if f.Outcome != fx.outcome {
				t.Errorf("outcome %s, want %s (%+v)", f.Outcome, fx.outcome, f)
			}
			if !strings.Contains(f.Observed, fx.observed) {
				t.Errorf("observed %q, want it to say %q", f.Observed, fx.observed)
			}
			if fx.examples != nil {
				if diff := cmp.Diff(fx.examples, f.Examples); diff != "" {
					t.Errorf("examples (-want +got):\n%s", diff)
				}
			}
		})
	}
	// These cannot fail by their meaning: what they ask about is whether anything was shown at all. The last is tested from inside.
	neverFail := map[string]bool{"ledger-complete": true, "drained": true, "faults-exercised": true}
	for _, d := range verdict.Invariants() {
		if d.Name == "sums-balance" {
			continue
		}
		want := map[verdict.Outcome]bool{verdict.Pass: true, verdict.Fail: true, verdict.Unknown: true}
		if neverFail[d.Name] {
			delete(want, verdict.Fail)
		}
		if diff := cmp.Diff(want, seen[d.Name]); diff != "" {
			t.Errorf("fixtures of %s (-want +got):\n%s", d.Name, diff)
		}
	}
}

func fixtures() []fixture {
	var all []fixture
	for _, list := range [][]fixture{lossFixtures, wholeFixtures, deadFixtures, recoveryFixtures, exercisedFixtures, latencyFixtures, orderFixtures, laneFixtures, rateFixtures} {
		all = append(all, list...)
	}
	return all
}
