package verdict_test

import (
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// updates asks for everything about the order of updates.
func updates(b *book) {
	b.header.Expect.Ordered, b.header.Expect.DebounceFinal = true, true
	b.header.Expect.DebounceBounds = &ledger.DebounceBounds{Quiet: s, MaxWait: 3 * s, Slack: 500 * ms}
}

// version adds an acked update of resource 1000, in 5 ms from when it was sent.
func (b *book) version(v uint32, sent time.Duration) uint32 {
	n := b.eventOf(ledger.Event{ID: "update", Flags: ledger.Latest, Resource: 1000, Version: v})
	b.ack(n, sent)
	return n
}

func updatesWith(add func(b *book)) func(b *book) {
	return func(b *book) { updates(b); add(b) }
}

var orderFixtures = []fixture{
	{"ordered", "forward", updatesWith(func(b *book) {
		b.effect(b.version(1, 0), 20*ms)
		b.effect(b.version(2, s), s+20*ms)
		b.effect(b.version(2, 2*s), 2*s+20*ms) // a tie
	}), verdict.Pass, "0 effects of an older version", nil},
	{"ordered", "backwards", updatesWith(func(b *book) {
		one, two := b.version(1, 0), b.version(2, s)
		b.effect(two, s+20*ms)
		b.effect(one, 2*s)
	}), verdict.Fail, "1 effects of an older version after a newer one, in 1 resource", []string{"update"}},
	{"ordered", "of any type", updatesWith(func(b *book) {
		one := b.eventOf(ledger.Event{ID: "created", Resource: 5, Version: 1})
		two := b.eventOf(ledger.Event{ID: "paid", Resource: 5, Version: 2})
		b.ack(one, 0)
		b.ack(two, 10*ms)
		b.effect(two, 20*ms)
		b.effect(one, 30*ms)
	}), verdict.Fail, "1 effects of an older version", []string{"created"}},
	{"ordered", "nothing to compare", updatesWith(func(b *book) { b.good(3) }), verdict.Unknown, "no resource had more than one effect", nil},

	{"debounce-final", "the newest is last", updatesWith(func(b *book) {
		b.version(1, 0)
		b.effect(b.version(3, 200*ms), 1300*ms)
		b.version(2, 2*s) // late and old: superseded
	}), verdict.Pass, "0 of 1 resource whose last effect", nil},
	{"debounce-final", "an old one wins", updatesWith(func(b *book) {
		one := b.version(1, 0)
		b.effect(b.version(2, 100*ms), 1200*ms)
		b.effect(one, 5*s)
	}), verdict.Fail, "1 of 1 resource whose last effect", []string{"update"}},
	{"debounce-final", "the newest is lost", updatesWith(func(b *book) {
		b.effect(b.version(1, 0), 1100*ms)
		b.version(2, 2*s)
	}), verdict.Fail, "1 of 1 resource whose last effect", []string{"update"}},
	{"debounce-final", "another type may come later", updatesWith(func(b *book) {
		created := b.eventOf(ledger.Event{ID: "created", Resource: 1000, Version: 1})
		b.ack(created, 0)
		b.effect(b.version(2, 100*ms), 1200*ms)
		b.effect(created, 5*s)
	}), verdict.Pass, "0 of 1 resource whose last effect", nil},
	{"debounce-final", "no such type", updatesWith(func(b *book) { b.good(3) }), verdict.Unknown, "only the latest matters", nil},
	{"debounce-final", "not drained", updatesWith(func(b *book) { notDrained(b); b.version(1, 0) }), verdict.Unknown, "so far", nil},

	{"debounce-bounds", "after the quiet window", updatesWith(func(b *book) {
		b.version(1, 0)
		b.effect(b.version(2, 900*ms), 1950*ms)
	}), verdict.Pass, "0 effects too early, 0 updates", nil},
	{"debounce-bounds", "each by itself", updatesWith(func(b *book) {
		b.effect(b.version(1, 0), 20*ms)
		b.effect(b.version(2, 100*ms), 120*ms)
	}), verdict.Fail, "2 effects too early", []string{"update", "update"}},
	{"debounce-bounds", "after the longest wait, with updates going on", updatesWith(func(b *book) {
		for v := range uint32(5) {
			b.version(v+1, time.Duration(v)*600*ms)
		}
		b.effect(b.version(6, 2900*ms), 3010*ms)
	}), verdict.Pass, "0 effects too early, 0 updates", nil},
	{"debounce-bounds", "a new window after an effect", updatesWith(func(b *book) {
		b.effect(b.version(1, 0), 1010*ms)
		b.effect(b.version(2, 1500*ms), 1600*ms)
	}), verdict.Fail, "1 effects too early", []string{"update"}},
	{"debounce-bounds", "too late", updatesWith(func(b *book) {
		b.version(1, 0)
		b.effect(b.version(2, 2500*ms), 4*s) // 4 s after the first, which may wait for 3.5 s
	}), verdict.Fail, "0 effects too early, 1 updates", []string{"update"}},
	{"debounce-bounds", "never", updatesWith(func(b *book) {
		b.effect(b.version(1, 0), 1010*ms)
		b.version(2, 5*s)
	}), verdict.Fail, "0 effects too early, 1 updates", []string{"update"}},
	{"debounce-bounds", "an earlier attempt may have brought it", updatesWith(func(b *book) {
		n := b.eventOf(ledger.Event{ID: "update", Flags: ledger.Latest, Resource: 1000, Version: 1})
		d := b.deliver(ledger.Genuine, stripe, n, 1)
		b.try(d, 0, 5*ms, ledger.Unanswered, ledger.Retry)
		b.try(d, 900*ms, 5*ms, ledger.OK, ledger.Settled)
		b.effect(n, 1010*ms)
		b.effect(b.eventAlone("other"), 1100*ms)
	}), verdict.Pass, "0 effects too early", nil},
	{"debounce-bounds", "nothing to judge", updatesWith(func(b *book) { b.good(3) }), verdict.Unknown, "no effect of a debounced event", nil},
}

// eventAlone is the only update of its resource, acked at once.
func (b *book) eventAlone(id string) uint32 {
	n := b.eventOf(ledger.Event{ID: id, Flags: ledger.Latest, Resource: 2000, Version: 1})
	b.ack(n, 0)
	return n
}
