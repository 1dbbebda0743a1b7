package loadgen

import (
	"fmt"
	"math"
	"testing"
	"time"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// tally counts what was injected, by name, and the slots to which it could be.
func tally(t *testing.T, plans []plan) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	for _, p := range plans {
		switch name := p.slot.role.Provider.Name; {
		case p.class == ledger.Genuine:
			got["slots"]++
			tallySlot(t, p.slot, got)
		case p.class == ledger.DuplicateSameID && p.key == p.slot.key:
			got["duplicates"]++
		case p.class == ledger.DuplicateNewID && p.key != p.slot.key && name != "bulk":
			got["new id"]++
		case p.class == ledger.Forged && p.flaw == expired && name == "acme":
			got["expired"]++
		case p.class == ledger.Forged && p.flaw != expired:
			got["forged"]++
		case p.class == ledger.Malformed && p.slot.events == nil:
			got["malformed"]++
		default:
			t.Errorf("plan %d of %s has the class %v, flaw %d, key %x of %x", p.seq, name, p.class, p.flaw, p.key, p.slot.key)
		}
	}
	return got
}

func tallySlot(t *testing.T, s *slot, got map[string]float64) {
	t.Helper()
	if s.role.Provider.NewDeliveryID {
		got["slots of several subscriptions"]++
	}
	if s.poison {
		got["poison"]++
	}
	if len(s.events) == 1 {
		got["singles"]++
	} else {
		got["batches"]++
	}
	broken := 0
	for _, e := range s.events {
		if e.Broken {
			broken++
		}
	}
	if broken > 1 || broken == 1 && len(s.events) == 1 {
		t.Errorf("%d broken items of %d", broken, len(s.events))
	}
	got["broken"] += float64(broken)
}

func TestStreamInjectsShares(t *testing.T) {
	_, books, plans := planAll(t, traffic(60_000))
	got := tally(t, plans)
	for _, tt := range []struct {
		what  string
		share float64
		of    string
	}{
		{"duplicates", 0.10, "slots"}, {"new id", 0.05, "slots of several subscriptions"}, {"expired", 0.04, "slots"}, {"forged", 0.06, "slots"},
		{"malformed", 0.02, "slots"}, {"poison", 0.03, "singles"}, {"broken", 0.2, "batches"},
	} {
		// Four standard deviations of a binomial count.
		want, room := tt.share*got[tt.of], 4*math.Sqrt(tt.share*(1-tt.share)*got[tt.of])
		if math.Abs(got[tt.what]-want) > room || want == 0 {
			t.Errorf("%s: %v, want %.0f ± %.0f", tt.what, got[tt.what], want, room)
		}
	}
	poisoned := 0.0
	for _, e := range books.events {
		if e.Flags&ledger.Poison != 0 {
			poisoned++
		}
	}
	if want := got["poison"] + got["broken"]; poisoned != want {
		t.Errorf("%v events are flagged as poison, want %v", poisoned, want)
	}
}

func TestStreamSpacesDuplicates(t *testing.T) {
	in := traffic(20_000)
	in.Inject = Inject{Duplicates: 0.5}
	_, _, plans := planAll(t, in)
	first := map[uint32]plan{}
	var same, soon, late int
	last := in.Schedule.At(in.Events - 1)
	for _, p := range plans {
		n := p.slot.events[0].Number
		if p.day > last {
			t.Fatalf("the duplicate of %d is due %v after the day's last event, want none after it", n, p.day-last)
		}
		if p.class == ledger.Genuine {
			first[n] = p
			continue
		}
		switch day, wait := p.day-first[n].day, p.wait-first[n].wait; {
		case day == 0 && wait == 0:
			same++
		case day == 0 && wait >= soonFrom && wait < soonUntil:
			soon++
		case wait == 0 && day >= afterwardsFrom && day < afterwardsUntil, wait == 0 && p.day == last:
			late++
		default:
			t.Fatalf("the duplicate of %d comes after %v of the day and %v", n, day, wait)
		}
	}
	if total := same + soon + late; same < total/4 || soon < total/4 || late < total/4 {
		t.Errorf("%d at the same instant, %d soon, %d late; want about a third each", same, soon, late)
	}
}

func TestStreamForgesIDs(t *testing.T) {
	in := traffic(60_000)
	_, _, plans := planAll(t, in)
	born := map[uint32]bool{}
	for _, kind := range []bool{false, true} {
		clear(born)
		var phantom, before, after float64
		for _, p := range plans {
			switch {
			case p.class == ledger.Genuine:
				born[p.slot.events[0].Number] = true
			case p.class != ledger.Forged || (p.flaw == expired) != kind:
			case int(p.slot.events[0].Number) >= in.Events:
				phantom++
			case born[p.slot.events[0].Number]:
				after++
			default:
				before++
			}
		}
		total := phantom + before + after
		for what, got := range map[string]struct{ n, want float64 }{"phantom": {phantom, 0.5}, "before": {before, 0.25}, "after": {after, 0.25}} {
			if math.Abs(got.n/total-got.want) > 0.04 {
				t.Errorf("expired %t: %s %.3f of %v, want %.2f", kind, what, got.n/total, total, got.want)
			}
		}
	}
}

// forgeries plans a day, asks each provider's own Sign whether a forgery would pass (what a receiver checks is the body that it sees), and returns
// how many forgeries of which flaw there are.
func forgeries(t *testing.T, in Traffic) map[string]int {
	t.Helper()
	_, _, plans := planAll(t, in)
	now := midnight.Add(12 * time.Hour)
	flaws := map[string]int{}
	for _, p := range plans {
		if p.class != ledger.Forged {
			continue
		}
		var forged, genuine provider.Request
		forged.Header, genuine.Header = map[string][]string{}, map[string][]string{}
		p.write(&forged, 1, provider.Answer{}, now)
		r := p.slot.role
		r.Provider.Render(&genuine, provider.Delivery{Key: p.key, Events: p.slot.events, Attempt: 1})
		genuine.Body = append(genuine.Body[:0], forged.Body...) // signed as it is seen
		r.Provider.Sign(&genuine, provider.Signing{Secrets: r.Secrets, URL: r.URL, Now: now})
		name := r.Provider.Name
		flaws[fmt.Sprintf("%s %d", name, p.flaw)]++
		if equal(forged, genuine) {
			t.Fatalf("plan %d: the forgery with flaw %d of %s is signed validly", p.seq, p.flaw, name)
		}
	}
	return flaws
}

func TestForgeriesAreForged(t *testing.T) {
	flaws := forgeries(t, traffic(20_000))
	for _, want := range []string{"acme 1", "acme 2", "acme 3", "acme 4", "acme 5", "bulk 1", "bulk 2", "bulk 3", "token 1", "token 3"} {
		if flaws[want] == 0 {
			t.Errorf("no forgery of the kind %q in %v", want, flaws)
		}
	}
	for _, never := range []string{"token 2", "token 4", "token 5", "bulk 4", "bulk 5"} {
		if flaws[never] != 0 {
			t.Errorf("%d forgeries of the kind %q, which that provider's rule accepts", flaws[never], never)
		}
	}
}

// TestRealProvidersCanBeForged: every provider that floodproof ships can be forged in every way, expires if it has a tolerance, and is dated ahead if its rule
// looks at that.
func TestRealProvidersCanBeForged(t *testing.T) {
	in := traffic(4000)
	in.Mix, in.Inject = nil, Inject{Forged: 0.5, Expired: 0.5, Duplicates: 0.1, OutOfOrder: 0.1, Malformed: 0.1, PoisonItems: 0.5}
	for _, p := range provider.All() {
		s := share(p, 1)
		if p.NewSecret != nil {
			s.Secrets = []string{p.NewSecret([32]byte{1})}
		}
		in.Mix = append(in.Mix, s)
	}
	flaws := forgeries(t, in)
	for _, p := range provider.All() {
		for _, f := range []flaw{wrongKey, altered, unsigned, expired, future} {
			want := true
			switch f {
			case expired:
				want = p.Tolerance > 0
			case future:
				want = p.FutureTolerance > 0
			default:
			}
			if got := flaws[fmt.Sprintf("%s %d", p.Name, f)]; (got > 0) != want {
				t.Errorf("%s: %d forgeries of flaw %d, want some: %t", p.Name, got, f, want)
			}
		}
	}
}

func TestExpiredSignaturesAreBeyondTheTolerance(t *testing.T) {
	in := traffic(1000)
	_, _, plans := planAll(t, in)
	now := midnight.Add(12 * time.Hour)
	for _, p := range plans {
		if p.flaw != expired {
			continue
		}
		req := provider.Request{Header: map[string][]string{}}
		p.write(&req, 1, provider.Answer{}, now)
		if got, want := req.Header.Get("X-Stamp"), fmt.Sprint(now.Add(-p.slot.role.Provider.Tolerance-beyond).Unix()); got != want {
			t.Errorf("plan %d: signed at %s, want %s", p.seq, got, want)
		}
	}
}

func TestSignaturesFromTheFutureAreBeyondTheTolerance(t *testing.T) {
	_, _, plans := planAll(t, traffic(20_000))
	now := midnight.Add(12 * time.Hour)
	for _, p := range plans {
		if p.flaw != future {
			continue
		}
		req := provider.Request{Header: map[string][]string{}}
		p.write(&req, 1, provider.Answer{}, now)
		stamp := fmt.Sprint(now.Add(p.slot.role.Provider.FutureTolerance + beyond).Unix())
		if got := req.Header.Get("X-Stamp"); got != stamp {
			t.Errorf("plan %d: signed at %s, want %s", p.seq, got, stamp)
		}
		if got, want := req.Header.Get("X-Signature"), mac(p.slot.role.Secrets[0], stamp, req.Body); got != want {
			t.Errorf("plan %d: the signature is wrong, so that its date is not what it is refused for", p.seq)
		}
	}
}

// TestFutureChangesOneForgeryInFour: a provider whose rule refuses dates ahead has one kind of forgery more. All that a seed meant before, it still means.
func TestFutureChangesOneForgeryInFour(t *testing.T) {
	in := traffic(20_000)
	_, _, after := planAll(t, in)
	for i := range in.Mix {
		blind := *in.Mix[i].Provider
		blind.FutureTolerance = 0
		in.Mix[i].Provider = &blind
	}
	_, _, before := planAll(t, in)
	if len(before) != len(after) {
		t.Fatalf("%d plans, and %d without forgeries from the future", len(after), len(before))
	}
	now := midnight.Add(12 * time.Hour)
	var changed, forged float64
	for i := range after {
		a, b := &after[i], &before[i]
		if a.class == ledger.Forged && a.flaw != expired && a.slot.role.Provider.Name == "acme" {
			forged++
		}
		if a.flaw == future && b.class == ledger.Forged && b.flaw != expired {
			changed++
			b.flaw = future
			blind := b.slot.role.Provider
			blind.FutureTolerance = a.slot.role.Provider.FutureTolerance // it was a copy
		}
		if got, want := show(a, now), show(b, now); got != want {
			t.Fatalf("plan %d became another:\n%s\n%s", i, got, want)
		}
	}
	if share := changed / forged; math.Abs(share-0.25) > 0.05 {
		t.Errorf("%.3f of %v forgeries are from the future, want a fourth", share, forged)
	}
}

func TestWrongSecretKeepsItsForm(t *testing.T) {
	for _, secrets := range [][]string{
		{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, {"44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"},
		{"dGVzdA=="}, {"aaaa"}, {"x"}, {"0123456789", "0123465789"},
	} {
		got := wrongSecret(secrets)
		for _, s := range secrets {
			if got == s {
				t.Errorf("wrongSecret(%q) is one of them", secrets)
			}
		}
		if len(secrets[0]) > 5 && len(got) != len(secrets[0]) {
			t.Errorf("wrongSecret(%q) = %q, want the same length", secrets, got)
		}
	}
}

func TestStreamSendsOutOfOrder(t *testing.T) {
	for _, share := range []float64{0.1, 0.6} {
		t.Run(fmt.Sprint(share), func(t *testing.T) { testOutOfOrder(t, share) })
	}
}

func testOutOfOrder(t *testing.T, share float64) {
	in := traffic(30_000)
	in.Inject = Inject{OutOfOrder: share}
	_, _, plans := planAll(t, in)
	type version struct{ resource, version uint32 }
	due := map[version]moment{}
	for _, p := range plans {
		for _, e := range p.slot.events {
			due[version{e.Resource, e.Version}] = p.moment
		}
	}
	var held, eligible int
	for _, p := range plans {
		first, newest := p.slot.events[0], p.slot.newest()
		if int(newest) < in.VersionsPerResource {
			eligible++
		}
		own := time.Duration(p.slot.events[len(p.slot.events)-1].Number) * time.Second
		if p.wait == 0 {
			if p.day != own && p.day < time.Duration(in.Events-1)*time.Second {
				t.Fatalf("plan %d is due at %v, want %v", p.seq, p.day, own)
			}
			continue
		}
		held++
		overtaken := false
		for v := newest + 1; int(v) <= in.VersionsPerResource; v++ {
			newer, ok := due[version{first.Resource, v}]
			overtaken = overtaken || ok && (newer.day < p.day || newer.day == p.day && newer.wait < p.wait)
		}
		if !overtaken {
			t.Errorf("plan %d: version %d of %d is due at %+v, before all newer ones", p.seq, newest, first.Resource, p.moment)
		}
	}
	// A resource has at most one delivery that waits, hence a little less.
	if got := float64(held) / float64(eligible); got > share+0.01 || got < 0.7*share {
		t.Errorf("%.3f of the deliveries with a newer version to come are out of order, want about %v", got, share)
	}
}

// TestStaleComesLongBehind: what is stale is sent when all newer versions of its resource are long out.
func TestStaleComesLongBehind(t *testing.T) {
	in := traffic(30_000)
	in.Mix, in.Inject = in.Mix[:1], Inject{Stale: 0.1}
	_, _, plans := planAll(t, in)
	type version struct{ resource, version uint32 }
	due := map[version]time.Duration{}
	for _, p := range plans {
		due[version{p.slot.events[0].Resource, p.slot.events[0].Version}] = p.day
	}
	last := in.Schedule.At(in.Events - 1)
	stale, eligible := 0, 0
	for _, p := range plans {
		e := p.slot.events[0]
		if int(e.Version) < in.VersionsPerResource {
			eligible++
		}
		if p.day == p.slot.due || p.day == last {
			continue
		}
		stale++
		newest := due[version{e.Resource, uint32(in.VersionsPerResource)}]
		if behind := p.day - newest; behind < afterwardsFrom || behind >= afterwardsUntil {
			t.Errorf("version %d of %d is due %v after the newest, want %v to %v", e.Version, e.Resource, behind, afterwardsFrom, afterwardsUntil)
		}
	}
	// A resource has at most one delivery that waits, hence a little less.
	if got := float64(stale) / float64(eligible); got > 0.11 || got < 0.07 {
		t.Errorf("%.3f of the deliveries with a newer version to come are stale, want about 0.1", got)
	}
}

// TestMoreInjections: each is hit for its share, in its class, and where it makes sense only.
func TestMoreInjections(t *testing.T) {
	in := traffic(40_000)
	in.Mix[1].Provider.Delays = nil // bulk never tries again
	in.Inject = Inject{ConcurrentDuplicates: 0.1, Oversized: 0.02, WrongType: 0.03, SlowBody: 0.04, CutBody: 0.05, ClientGone: 0.06}
	_, _, plans := planAll(t, in)
	got := map[string]float64{}
	genuine := map[uint32]moment{}
	for _, p := range plans {
		switch {
		case p.class == ledger.Genuine:
			got["slots"]++
			genuine[p.slot.events[0].Number] = p.moment
			if p.slot.role.Provider.OneShot() {
				if p.shape != Whole {
					t.Errorf("plan %d of a provider that never tries again has shape %d", p.seq, p.shape)
				}
				continue
			}
			got["slots that are tried again"]++
			got[map[Shape]string{Whole: "whole", CutBody: "cut body", ClientGone: "client gone", SlowBody: "slow genuine"}[p.shape]]++
		case p.class == ledger.DuplicateSameID && p.moment == genuine[p.slot.events[0].Number] && p.shape == Whole:
			got["concurrent"]++
		case p.class == ledger.Malformed && p.slot.events == nil:
			got[map[flaw]string{oversized: "oversized", wrongType: "wrong type", slow: "slow body"}[p.flaw]]++
			if (p.flaw == slow) != (p.shape == SlowBody) {
				t.Errorf("plan %d has flaw %d and shape %d", p.seq, p.flaw, p.shape)
			}
		default:
			t.Errorf("plan %d has the class %v, flaw %d", p.seq, p.class, p.flaw)
		}
	}
	for _, tt := range []struct {
		what  string
		share float64
		of    string
	}{
		{"concurrent", 0.1, "slots"}, {"oversized", 0.02, "slots"}, {"wrong type", 0.03, "slots"}, {"slow body", 0.04, "slots"},
		{"cut body", 0.05, "slots that are tried again"}, {"client gone", 0.06 * 0.95, "slots that are tried again"},
	} {
		want, room := tt.share*got[tt.of], 4*math.Sqrt(tt.share*(1-tt.share)*got[tt.of])
		if math.Abs(got[tt.what]-want) > room || want == 0 {
			t.Errorf("%s: %v, want %.0f ± %.0f", tt.what, got[tt.what], want, room)
		}
	}
}
