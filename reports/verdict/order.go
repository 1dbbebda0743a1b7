package verdict

import (
	"cmp"
	"fmt"
	"slices"

	"floodproof/reports/ledger"
)

// order is what can be said of the effects of one resource after another. It is measured where the scenario asks for it, while events can still be picked as examples.
type order struct {
	// resources are those with an event of a type of which only the latest version matters, chains those with two effects or more, of whatever type.
	resources, chains int64
	backwards, stale  violations // for ordered and debounce-final
	early, late       violations // for debounce-bounds
	windows           int64      // effects that debounce-bounds could judge
}

// violations are events that break a rule: the first of them, and how many there were.
type violations struct {
	picked pick
	count  int64
}

func (v *violations) add(n uint32) {
	v.count++
	v.picked.add(n)
}

// update is an event as one of the versions of its resource.
type update struct {
	n                 uint32
	resource, version uint32
	// sent is when the attempt that was acked began, acked when its answer was complete, effect when the event was done, forever without that; microseconds.
	sent, acked, effect int64
	latest, dead        bool
	// known: no attempt before the acked one can have brought it.
	known bool
}

// measureOrder looks at each resource.
func (h *History) measureOrder() {
	x := h.header.Expect
	if !x.Ordered && !x.DebounceFinal && x.DebounceBounds == nil {
		return
	}
	failed := map[uint32]bool{}
	for i, f := range h.failures.all() {
		if i < h.nFailures {
			failed[f.event] = true
		}
	}
	var all []update
	for n, e := range h.events.all() {
		if !e.counts() || e.ack == 0 {
			continue
		}
		u := update{n: n, resource: e.resource, version: e.version, latest: e.flags&ledger.Latest != 0, known: !failed[n], effect: forever}
		u.sent, u.acked = h.ackOf(e).start(), h.ackOf(e).done()
		u.dead = h.ending(n, e) == deadLettered
		if h.whole(n, e) {
			u.effect = e.effect
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b update) int {
		return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.effect, b.effect), cmp.Compare(a.version, b.version))
	})
	for len(all) > 0 {
		end := slices.IndexFunc(all, func(u update) bool { return u.resource != all[0].resource })
		if end < 0 {
			end = len(all)
		}
		h.order.look(all[:end], x.DebounceBounds)
		all = all[end:]
	}
}

// look judges one resource, whose updates are in the order of their effects, those without one last.
func (o *order) look(updates []update, bounds *ledger.DebounceBounds) {
	done := updates
	if i := slices.IndexFunc(updates, func(u update) bool { return u.effect == forever }); i >= 0 {
		done = updates[:i]
	}
	if len(done) > 1 {
		o.chains++
	}
	for i := 1; i < len(done); i++ {
		if done[i].version < done[i-1].version {
			o.backwards.add(done[i].n)
		}
	}
	o.lookAtLatest(only(updates, isLatest), only(done, isLatest), bounds)
}

func isLatest(u update) bool { return u.latest }

func only(updates []update, which func(update) bool) (out []update) {
	for _, u := range updates {
		if which(u) {
			out = append(out, u)
		}
	}
	return out
}

// lookAtLatest judges those updates of a resource of which only the latest matters; its other events are no part of that.
func (o *order) lookAtLatest(updates, done []update, bounds *ledger.DebounceBounds) {
	if len(updates) == 0 {
		return
	}
	o.resources++
	newest := slices.MaxFunc(updates, func(a, b update) int { return cmp.Compare(a.version, b.version) })
	if !newest.dead && (len(done) == 0 || done[len(done)-1].version < newest.version) {
		o.stale.add(newest.n)
	}
	if bounds != nil {
		o.lookAtWindows(updates, done, bounds)
	}
}

// lookAtWindows compares when effects came with when their window can have ended: an update is in the queue at some time between the begin of the attempt that
// brought it and the answer.
func (o *order) lookAtWindows(updates, done []update, bounds *ledger.DebounceBounds) {
	quiet, most, slack := micros(bounds.Quiet), micros(bounds.MaxWait), micros(bounds.Slack)
	for i, u := range done {
		if !u.known {
			continue
		}
		o.windows++
		// The window of this effect opened with the first update that came after the one before was given out.
		opened := u.sent
		for _, other := range updates {
			since := i == 0 || other.sent >= done[i-1].sent && other.n != done[i-1].n
			if since && other.version <= u.version {
				opened = min(opened, other.sent)
			}
		}
		if u.effect < u.sent+quiet && u.effect < opened+most {
			o.early.add(u.n)
		}
	}
	for _, u := range updates {
		if u.dead {
			continue
		}
		answered := slices.ContainsFunc(done, func(d update) bool { return d.version >= u.version && d.effect <= u.acked+most+slack })
		if !answered {
			o.late.add(u.n)
		}
	}
}

// ordered: effects of one resource never go back in version.
type ordered struct{}

func (ordered) Name() string { return "ordered" }

func (ordered) Check(h *History) (Finding, error) {
	o := &h.order
	f := none(o.backwards.count, "effects")
	f.Observed = fmt.Sprintf("%d effects of an older version after a newer one, in %s with more than one effect", o.backwards.count, plural(int(o.chains), "resource"))
	switch {
	case f.Outcome == Fail:
		f.Examples = h.ids(o.backwards.picked)
		f.Hint = "the version before each example in its resource took effect later: keep the events of one resource in one line, or compare versions where they are written"
	case o.chains == 0:
		return f.unknown("no resource had more than one effect", "raise versions_per_resource in the scenario"), nil
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	}
	return f, nil
}

// debounceFinal: the last effect of a resource is that of the highest version that was acked.
type debounceFinal struct{}

func (debounceFinal) Name() string { return "debounce-final" }

func (debounceFinal) Check(h *History) (Finding, error) {
	o := &h.order
	f := none(o.stale.count, "resources")
	f.Observed = fmt.Sprintf("%d of %s whose last effect is not that of the newest acked version", o.stale.count, plural(int(o.resources), "resource"))
	switch {
	case f.Outcome == Fail && h.drained():
		f.Examples = h.ids(o.stale.picked)
		f.Hint = "each example is a newest version: did an older one win that came late, or was an update lost that came while an older one was worked on?"
	case o.resources == 0:
		return f.unknown("no event was acked of a type of which only the latest matters", "list the types under load: latest:"), nil
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	}
	return f, nil
}

// debounceBounds: an effect comes when its resource has been quiet for long enough or has waited for the longest time, and no later than that and some slack.
type debounceBounds struct{ limits ledger.DebounceBounds }

func (debounceBounds) Name() string { return "debounce-bounds" }

func (b debounceBounds) Check(h *History) (Finding, error) {
	if b.limits.Quiet <= 0 || b.limits.MaxWait < b.limits.Quiet || b.limits.Slack < 0 {
		return Finding{}, fmt.Errorf("bounds %+v make no sense", b.limits)
	}
	o := &h.order
	f := none(o.early.count+o.late.count, "events")
	f.Observed = fmt.Sprintf("%d effects too early, %d updates without an effect of their version or a newer one in time, in %s", o.early.count, o.late.count, plural(int(o.resources), "resource"))
	switch {
	case f.Outcome == Fail && (h.drained() || o.early.count > 0):
		f.Examples = append(h.ids(o.early.picked), h.ids(o.late.picked)...)
		f.Examples = f.Examples[:min(len(f.Examples), maxExamples)]
		f.Hint = "too early: is each update worked on by itself? Too late: does every update move the window without a longest wait, or is there a backlog?"
	case o.windows == 0:
		return f.unknown("no effect of a debounced event could be judged", "list the types under load: latest:, and debounce them in the pipeline"), nil
	case !h.drained():
		return f.unknown(f.Observed+" so far", hintNotDrained), nil
	}
	return f, nil
}
