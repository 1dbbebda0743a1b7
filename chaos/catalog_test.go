package chaos_test

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
	"floodproof/reports/ledger"
)

func everything() chaos.Deps {
	d := &diary{}
	f := newFleet(d, "worker", 2)
	f["receiver"] = newFleet(d, "receiver", 2)["receiver"]
	f["broker"] = newFleet(d, "broker", 1)["broker"]
	for _, p := range slices.Concat(f["worker"], f["receiver"]) {
		p.coming = 1 // a crash that nobody comes to is unmet
	}
	return chaos.Deps{Fleet: f, Downstream: &downstream{}, Holder: &holder{diary: d}, Flooder: &flooder{}, Rand: seeded(1)}
}

func TestCatalogIsWhole(t *testing.T) {
	var names []string
	for _, k := range chaos.Catalog() {
		names = append(names, k.Name)
		f, err := k.New(nil, everything())
		if err != nil {
			t.Errorf("%s with its defaults: %v", k.Name, err)
			continue
		}
		if f.Name() != k.Name || f.Side() != k.Side {
			t.Errorf("%s: the fault says %s and side %d, the catalogue side %d", k.Name, f.Name(), f.Side(), k.Side)
		}
		if !strings.HasSuffix(k.Doc, ".") || strings.Count(k.Doc, ". ") > 0 {
			t.Errorf("%s: %q is not one sentence", k.Name, k.Doc)
		}
		for _, p := range k.Params {
			if p.Name == "" || p.Doc == "" || p.Default == "" {
				t.Errorf("%s: parameter %+v lacks something", k.Name, p)
			}
			// In a scenario a fault's parameters stand beside the keys of the step.
			if slices.Contains([]string{"fault", "segment", "at", "for", "every", "times"}, p.Name) {
				t.Errorf("%s: parameter %s has the name of a step's key", k.Name, p.Name)
			}
		}
	}
	want := []string{
		"broker.connections", "broker.failover", "broker.kill", "broker.out-of-memory", "broker.pause", "broker.terminate", "disk.fsync-error", "disk.full", "disk.power-cut", "disk.slow-fsync", "downstream.hang", "downstream.outage", "downstream.poison-type", "downstream.rate-limit", "downstream.reset-after-effect", "downstream.slow", "downstream.throttle", "net.black-hole", "net.cut-reply", "net.delay", "net.half-open", "net.hang", "net.partition", "net.refuse", "net.reset", "net.slice", "net.stall", "net.throttle", "queue.hold", "receiver.clock", "receiver.crash", "receiver.kill", "receiver.out-of-memory", "receiver.pause", "receiver.rolling-restart", "receiver.starve", "receiver.terminate", "traffic.forged-flood", "worker.clock", "worker.crash", "worker.kill", "worker.kill-at-effect", "worker.out-of-memory", "worker.pause", "worker.rolling-restart", "worker.starve", "worker.terminate",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestSides pins what each fault excuses: this is part of the verdict.
func TestSides(t *testing.T) {
	want := map[string]ledger.Side{
		"downstream.outage": ledger.Downstream, "downstream.reset-after-effect": ledger.Downstream, "downstream.throttle": ledger.Downstream,
		"downstream.hang": ledger.Downstream, "downstream.poison-type": ledger.Downstream, "downstream.rate-limit": ledger.Downstream, "downstream.slow": ledger.Downstream,
		"traffic.forged-flood": ledger.Traffic,
		"net.black-hole":       ledger.Broker, "net.cut-reply": ledger.Broker, "net.delay": ledger.Ingress, "net.half-open": ledger.Broker, "net.partition": ledger.Broker, "net.hang": ledger.Ingress,
		"net.refuse": ledger.Ingress, "net.reset": ledger.Broker, "net.slice": ledger.Ingress, "net.stall": ledger.Broker, "net.throttle": ledger.Ingress,
		"disk.power-cut": ledger.Disk, "disk.full": ledger.Disk, "disk.fsync-error": ledger.Disk, "disk.slow-fsync": ledger.Disk, "broker.kill": ledger.Broker, "broker.pause": ledger.Broker, "receiver.pause": ledger.Receiver, "worker.pause": ledger.Worker,
		"broker.connections": ledger.Broker, "broker.failover": ledger.Broker, "broker.out-of-memory": ledger.Broker, "broker.terminate": ledger.Broker,
		"receiver.out-of-memory": ledger.Receiver, "worker.out-of-memory": ledger.Worker,
		"receiver.clock": ledger.Clock, "receiver.crash": ledger.Receiver, "receiver.rolling-restart": ledger.Receiver, "receiver.starve": ledger.Receiver, "receiver.terminate": ledger.Receiver,
		"worker.clock": ledger.Worker, "worker.crash": ledger.Worker, "worker.rolling-restart": ledger.Worker, "worker.starve": ledger.Worker, "worker.terminate": ledger.Worker,
		"queue.hold": ledger.Broker, "receiver.kill": ledger.Receiver, "worker.kill": ledger.Worker, "worker.kill-at-effect": ledger.Worker,
	}
	got := make(map[string]ledger.Side)
	for _, k := range chaos.Catalog() {
		got[k.Name] = k.Side
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sides (-want +got):\n%s", diff)
	}
}

// TestEveryFaultHealsEverything injects each fault with its defaults and looks for what it left behind.
func TestEveryFaultHealsEverything(t *testing.T) {
	for _, k := range chaos.Catalog() {
		t.Run(k.Name, func(t *testing.T) {
			deps := everything()
			f, err := k.New(nil, deps)
			if err != nil {
				t.Fatal(err)
			}
			target, heal, err := f.Inject(t.Context(), 1)
			if err != nil || target == "" {
				t.Fatalf("Inject: got target %q, error %v", target, err)
			}
			if err := heal(t.Context()); err != nil {
				t.Errorf("heal: %v", err)
			}
			fl := deps.Fleet.(fleet)
			if dead := slices.Concat(fl.dead("worker"), fl.dead("receiver"), fl.dead("broker"), fl.paused("worker"), fl.paused("receiver"), fl.paused("broker"), fl.bent("worker"), fl.bent("receiver")); len(dead) > 0 {
				t.Errorf("dead or paused after the heal: %v", dead)
			}
			if n := deps.Flooder.(*flooder).running; n != 0 {
				t.Errorf("%d floods after the heal", n)
			}
			if n := deps.Downstream.(*downstream).inPlace(); n > 0 {
				t.Errorf("%d misbehaviours in place after the heal", n)
			}
		})
	}
}

// TestNothingIsInjectedIntoADoneContext: a run that is being stopped breaks nothing more.
func TestNothingIsInjectedIntoADoneContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, k := range chaos.Catalog() {
		deps := everything()
		f, err := k.New(nil, deps)
		if err != nil {
			t.Fatal(err)
		}
		if _, heal, err := f.Inject(ctx, 1); err == nil || heal != nil {
			t.Errorf("%s: got error %v and heal %t, want an error and nothing to heal", k.Name, err, heal != nil)
		}
		fl := deps.Fleet.(fleet)
		if dead := slices.Concat(fl.dead("worker"), fl.dead("receiver"), fl.dead("broker"), fl.paused("worker"), fl.paused("receiver"), fl.paused("broker"), fl.bent("worker"), fl.bent("receiver")); len(dead) > 0 || deps.Downstream.(*downstream).inPlace() > 0 || deps.Flooder.(*flooder).running > 0 {
			t.Errorf("%s left something behind: %v", k.Name, dead)
		}
	}
}

func TestBadParameters(t *testing.T) {
	tests := []struct {
		fault  string
		params chaos.Params
		want   string
	}{
		{"worker.kill", chaos.Params{"cuont": {Number: 1}}, `unknown parameter "cuont" \(known: which, count\)`},
		{"worker.kill", chaos.Params{"count": {Number: 0}}, `worker.kill: count is 0, must be a whole number between 1 and`},
		{"worker.kill", chaos.Params{"count": {Number: 1.5}}, `count is 1.5`},
		{"receiver.kill", chaos.Params{"which": {Text: "some"}}, `which is "some", must be one of random, all`},
		{"receiver.kill", chaos.Params{"which": {Text: "all"}, "count": {Number: 2}}, `leave one of them out`},
		{"downstream.throttle", chaos.Params{"share": {Number: 0}}, `share is 0%, must be more than 0% and at most 100%`},
		{"downstream.throttle", chaos.Params{"share": {Number: 1.01}}, `share is 101%`},
		{"downstream.throttle", chaos.Params{"retry_after": {Duration: -1}}, `retry_after is -1ns, must be between 0s and 1h`},
		{"downstream.outage", chaos.Params{"answer": {Text: "shrug"}}, `must be one of reset, hang, status`},
		{"downstream.outage", chaos.Params{"answer": {Text: "status"}, "status": {Number: 404}}, `status is 404`},
		{"downstream.outage", chaos.Params{"status": {Number: 500}}, `no meaning without answer: status`},
		{"downstream.reset-after-effect", chaos.Params{"share": {Number: -0.5}}, `share is -50%`},
		{"downstream.slow", chaos.Params{"share": {Number: 0}, "delay": {Duration: time.Hour}}, `(?s)share is 0%.*delay is 1h0m0s, must be between 1ms and 1m0s`},
		{"downstream.hang", chaos.Params{"moment": {Text: "during"}}, `must be one of before, after`},
		{"downstream.rate-limit", chaos.Params{"rate": {Number: 0}, "burst": {Number: 0.5}}, `(?s)rate is 0.*burst is 0.5`},
		{"downstream.poison-type", chaos.Params{"events": {Text: "orders"}}, `events is "orders", must be a provider and a type`},
		{"downstream.poison-type", chaos.Params{"events": {Text: "/orders"}}, `must be a provider and a type`},
		{"downstream.poison-type", chaos.Params{"status": {Number: 500}}, `no meaning without answer: status`},
		{"downstream.poison-type", chaos.Params{"answer": {Text: "status"}, "status": {Number: 429}}, `status is 429`},
		{"traffic.forged-flood", chaos.Params{"rate": {Number: 1e6}}, `rate is 1e\+06, must be a whole number between 1 and 50000`},
		{"worker.terminate", chaos.Params{"grace": {Duration: time.Minute}}, `grace is 1m0s, must be between 1ms and 12s`},
		{"receiver.rolling-restart", chaos.Params{"pause": {Duration: time.Hour}}, `pause is 1h0m0s`},
		{"worker.crash", chaos.Params{"point": {Text: "after-answer"}, "nth": {}, "crashes": {}}, `(?s)point is "after-answer", must be one of before-settle, after-claim, after-settle.*nth is 0.*crashes is 0`},
		{"receiver.starve", chaos.Params{"stopped": {}, "period": {Duration: time.Millisecond}}, `(?s)stopped is 0%.*period is 1ms, must be between 10ms and 10s`},
		{"receiver.clock", chaos.Params{"by": {}, "direction": {Text: "sideways"}}, `(?s)by is 0s.*must be one of ahead, back`},
		{"broker.connections", chaos.Params{"count": {}}, `unknown parameter "count"`},
		{"disk.full", chaos.Params{"room": {Number: -1}, "overwrites": {Text: "perhaps"}, "server": {Text: "sold"}}, `(?s)room is -1.*overwrites is "perhaps", must be one of refused, taken.*server is "sold"`},
		{"worker.out-of-memory", chaos.Params{"room": {Number: 0.5}}, `room is 0.5, must be a whole number between 1 and 1024`},
		{"net.partition", chaos.Params{"link": {Text: "wire"}, "direction": {Text: "left"}, "answer": {Text: "maybe"}}, `(?s)link is "wire".*direction is "left".*answer is "maybe", must be one of drop, reset`},
		{"queue.hold", chaos.Params{"kill_after": {Duration: time.Minute}}, `kill_after is 1m0s, must be between 0s and 10s`},
		{"worker.kill-at-effect", chaos.Params{"moment": {Text: "during"}}, `must be one of after, before`},
		{"worker.kill-at-effect", chaos.Params{"calls": {}, "restart_after": {Duration: time.Hour}}, `(?s)calls is 0.*restart_after is 1h`},
		{"worker.kill", chaos.Params{"cuont": {}, "count": {}}, `(?s)cuont.*count is 0`},
	}
	for _, tt := range tests {
		k := kind(t, tt.fault)
		if _, err := k.New(tt.params, everything()); err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
			t.Errorf("%s %v: got error %v, want %s", tt.fault, tt.params, err, tt.want)
		}
		// What is wrong shows before there is anything to act on.
		if err := k.Check(tt.params); err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
			t.Errorf("check %s %v: got error %v, want %s", tt.fault, tt.params, err, tt.want)
		}
	}
}

func TestNotApplicableWithoutWhatItActsOn(t *testing.T) {
	for _, k := range chaos.Catalog() {
		if _, err := k.New(nil, chaos.Deps{Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s: got error %v, want ErrNotApplicable", k.Name, err)
		}
		if err := k.Check(nil); err != nil {
			t.Errorf("check %s: %v", k.Name, err)
		}
		deps := everything()
		deps.Rand = nil
		if _, err := k.New(nil, deps); err == nil || errors.Is(err, chaos.ErrNotApplicable) {
			t.Errorf("%s without a generator: got error %v", k.Name, err)
		}
	}
	na := chaos.NotApplicable{Kind: kind(t, "queue.hold"), Why: "the queue is yours"}
	if _, _, err := na.Inject(t.Context(), 0); !errors.Is(err, chaos.ErrNotApplicable) {
		t.Errorf("inject what is not applicable: got error %v", err)
	}
}
