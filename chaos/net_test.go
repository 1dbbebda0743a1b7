package chaos_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/chaos"
	"floodproof/chaos/proxy"
	"floodproof/reports/ledger"
)

// link is a fake that keeps what was imposed on it.
type link struct {
	met      proxy.Met
	noImpose error
	noLift   error

	imposed []proxy.Condition
	inPlace int
}

func (l *link) Impose(c proxy.Condition) (func() (proxy.Met, error), error) {
	if l.noImpose != nil {
		return nil, l.noImpose
	}
	l.imposed = append(l.imposed, c)
	l.inPlace++
	return func() (proxy.Met, error) {
		l.inPlace--
		return l.met, l.noLift
	}, nil
}

// Link gives the fake processes a network on which everything meets somebody.
func (f fleet) Link(string) (chaos.Link, bool) {
	return &link{met: proxy.Met{Connections: 1, Cuts: 1}}, true
}

// network is a fleet without processes, and with the links that a test gives it.
type network map[string]chaos.Link

func (network) Processes(string) []chaos.Process { return nil }

func (n network) Link(name string) (chaos.Link, bool) {
	l, ok := n[name]
	return l, ok
}

// offline is a fleet without a network.
type offline struct{}

func (offline) Processes(string) []chaos.Process { return nil }

func netKind(t *testing.T, name string) chaos.Kind {
	t.Helper()
	for _, k := range chaos.NetKinds() {
		if k.Name == name {
			return k
		}
	}
	t.Fatalf("no fault of the network is named %s", name)
	return chaos.Kind{}
}

// everywhere is a network with one link under every name.
func everywhere(l chaos.Link) network {
	return network{chaos.LinkProviderReceiver: l, chaos.LinkReceiverQueue: l, chaos.LinkWorkerQueue: l, chaos.LinkWorkerDownstream: l}
}

func newNetFault(t *testing.T, name string, p chaos.Params, n network) chaos.Fault {
	t.Helper()
	f, err := netKind(t, name).New(p, chaos.Deps{Fleet: n, Rand: seeded(1)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func text(s string) chaos.Value    { return chaos.Value{Text: s} }
func number(n float64) chaos.Value { return chaos.Value{Number: n} }

func TestNetFaultsImposeWhatTheySay(t *testing.T) {
	tests := []struct {
		fault  string
		params chaos.Params
		target string
		want   proxy.Condition
	}{
		{"net.delay", nil, chaos.LinkProviderReceiver,
			proxy.Condition{Delay: 200 * time.Millisecond, Jitter: 50 * time.Millisecond}},
		{"net.delay", chaos.Params{"delay": {Duration: time.Millisecond}, "direction": text("down")}, chaos.LinkProviderReceiver,
			proxy.Condition{Direction: proxy.Down, Delay: time.Millisecond, Jitter: time.Millisecond}},
		{"net.throttle", chaos.Params{"rate": number(5), "direction": text("up")}, chaos.LinkProviderReceiver,
			proxy.Condition{Direction: proxy.Up, Rate: 5}},
		{"net.slice", nil, chaos.LinkProviderReceiver, proxy.Condition{Slice: 16, Pause: time.Millisecond}},
		{"net.stall", chaos.Params{"link": text("worker-queue")}, chaos.LinkWorkerQueue, proxy.Condition{Stall: true}},
		{"net.black-hole", chaos.Params{"direction": text("down")}, chaos.LinkReceiverQueue, proxy.Condition{Direction: proxy.Down, BlackHole: true}},
		{"net.hang", nil, chaos.LinkProviderReceiver, proxy.Condition{New: proxy.Hang, Reset: true}},
		{"net.hang", chaos.Params{"existing": text("keep")}, chaos.LinkProviderReceiver, proxy.Condition{New: proxy.Hang}},
		{"net.reset", nil, chaos.LinkReceiverQueue, proxy.Condition{Reset: true, New: proxy.ResetNew}},
		{"net.reset", chaos.Params{"connections": text("existing")}, chaos.LinkReceiverQueue, proxy.Condition{Reset: true}},
		{"net.reset", chaos.Params{"connections": text("new")}, chaos.LinkReceiverQueue, proxy.Condition{New: proxy.ResetNew}},
		{"net.refuse", nil, chaos.LinkProviderReceiver, proxy.Condition{New: proxy.Refuse, Reset: true}},
		{"net.refuse", chaos.Params{"existing": text("keep")}, chaos.LinkProviderReceiver, proxy.Condition{New: proxy.Refuse}},
		{"net.half-open", nil, chaos.LinkReceiverQueue, proxy.Condition{Direction: proxy.Down, HalfOpen: true}},
		{"net.half-open", chaos.Params{"vanishes": text("client")}, chaos.LinkReceiverQueue, proxy.Condition{Direction: proxy.Up, HalfOpen: true}},
		{"net.cut-reply", nil, chaos.LinkReceiverQueue, proxy.Condition{Direction: proxy.Down, Cut: &proxy.Cut{Reply: 1}}},
		{"net.cut-reply", chaos.Params{"byte": number(9), "reply": number(3), "cuts": number(2), "end": text("reset"), "link": text("worker-downstream")}, chaos.LinkWorkerDownstream,
			proxy.Condition{Direction: proxy.Down, Cut: &proxy.Cut{Byte: 9, Reply: 3, Times: 2, Reset: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			l := &link{met: proxy.Met{Connections: 1, Cuts: 1}}
			target, heal, err := newNetFault(t, tt.fault, tt.params, network{tt.target: l}).Inject(t.Context(), 7)
			if err != nil || target != tt.target {
				t.Fatalf("Inject: got target %q, error %v", target, err)
			}
			if diff := cmp.Diff([]proxy.Condition{tt.want}, l.imposed); diff != "" || l.inPlace != 1 {
				t.Errorf("%d in place (-want +got):\n%s", l.inPlace, diff)
			}
			if err := heal(t.Context()); err != nil || l.inPlace != 0 {
				t.Errorf("heal: error %v, %d in place", err, l.inPlace)
			}
		})
	}
}

// TestNetFaultsThatNobodyMetSaySo, all but the refusal, which only the kernel sees.
func TestNetFaultsThatNobodyMetSaySo(t *testing.T) {
	for _, k := range chaos.NetKinds() {
		for _, met := range []proxy.Met{{}, {Connections: 3, Bytes: 9}} {
			l := &link{met: met}
			_, heal, err := newNetFault(t, k.Name, nil, everywhere(l)).Inject(t.Context(), 7)
			if err != nil {
				t.Fatal(err)
			}
			unmet := k.Name != "net.refuse" && (met.Connections == 0 || k.Name == "net.cut-reply")
			if err := heal(t.Context()); errors.Is(err, chaos.ErrUnmet) != unmet || !unmet && err != nil {
				t.Errorf("%s met %+v: got error %v, want unmet %t", k.Name, met, err, unmet)
			}
			if l.inPlace != 0 {
				t.Errorf("%s: %d in place", k.Name, l.inPlace)
			}
		}
	}
}

func TestNetFaultsReportWhatFails(t *testing.T) {
	for _, k := range chaos.NetKinds() {
		_, heal, err := newNetFault(t, k.Name, nil, everywhere(&link{noImpose: errBroken})).Inject(t.Context(), 7)
		if !errors.Is(err, errBroken) || heal != nil {
			t.Errorf("%s: Inject: got error %v and heal %t", k.Name, err, heal != nil)
		}
		_, heal, err = newNetFault(t, k.Name, nil, everywhere(&link{noLift: errBroken})).Inject(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
		if err := heal(t.Context()); !errors.Is(err, errBroken) || errors.Is(err, chaos.ErrUnmet) {
			t.Errorf("%s: heal: got error %v", k.Name, err)
		}
		l := &link{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, heal, err := newNetFault(t, k.Name, nil, everywhere(l)).Inject(ctx, 7); err == nil || heal != nil || len(l.imposed) > 0 {
			t.Errorf("%s into a done context: got error %v, heal %t, imposed %v", k.Name, err, heal != nil, l.imposed)
		}
	}
}

// TestNetSides pins what each link excuses: this is part of the verdict.
func TestNetSides(t *testing.T) {
	want := map[string]ledger.Side{
		chaos.LinkProviderReceiver: ledger.Ingress, chaos.LinkReceiverQueue: ledger.Broker,
		chaos.LinkWorkerQueue: ledger.Worker, chaos.LinkWorkerDownstream: ledger.Worker,
	}
	for _, k := range chaos.NetKinds() {
		for name, side := range want {
			if got := newNetFault(t, k.Name, chaos.Params{"link": text(name)}, everywhere(&link{})).Side(); got != side {
				t.Errorf("%s on %s: got side %d, want %d", k.Name, name, got, side)
			}
		}
		if got := newNetFault(t, k.Name, nil, everywhere(&link{})).Side(); got != k.Side {
			t.Errorf("%s: the catalogue says side %d, the fault %d", k.Name, k.Side, got)
		}
	}
}

func TestNetFaultsNeedTheirLink(t *testing.T) {
	for _, k := range chaos.NetKinds() {
		for _, f := range []chaos.Fleet{nil, offline{}, network{"elsewhere": &link{}}} {
			if _, err := k.New(nil, chaos.Deps{Fleet: f, Rand: seeded(1)}); !errors.Is(err, chaos.ErrNotApplicable) {
				t.Errorf("%s on %T: got error %v, want ErrNotApplicable", k.Name, f, err)
			}
		}
		if err := k.Check(nil); err != nil {
			t.Errorf("check %s: %v", k.Name, err)
		}
		if f, err := k.New(chaos.Params{"link": text("worker-queue")}, chaos.Deps{Fleet: network{"worker-queue": &link{}}, Rand: seeded(1)}); err != nil || f.Name() != k.Name {
			t.Errorf("%s on the one link that there is: got %v, error %v", k.Name, f, err)
		}
	}
}

func TestNetBadParameters(t *testing.T) {
	tests := []struct {
		fault  string
		params chaos.Params
		want   string
	}{
		{"net.delay", chaos.Params{"link": text("moon-earth")}, `net.delay: link is "moon-earth", must be one of provider-receiver, receiver-queue`},
		{"net.delay", chaos.Params{"direction": text("sideways")}, `must be one of up, down, both`},
		{"net.delay", chaos.Params{"delay": {}}, `delay is 0s, must be between 1µs and 1m`},
		{"net.delay", chaos.Params{"delay": {Duration: time.Second}, "jitter": {Duration: 2 * time.Second}}, `jitter is 2s, must be at most the delay of 1s`},
		{"net.throttle", chaos.Params{"rate": number(0)}, `rate is 0, must be a whole number`},
		{"net.slice", chaos.Params{"bytes": number(0.5)}, `bytes is 0.5`},
		{"net.slice", chaos.Params{"pause": {Duration: time.Hour}}, `pause is 1h0m0s`},
		{"net.hang", chaos.Params{"direction": text("up")}, `unknown parameter "direction" \(known: link, existing\)`},
		{"net.reset", chaos.Params{"connections": text("some")}, `must be one of existing, new, all`},
		{"net.refuse", chaos.Params{"existing": text("shake")}, `must be one of reset, keep`},
		{"net.half-open", chaos.Params{"vanishes": text("both")}, `must be one of server, client`},
		{"net.cut-reply", chaos.Params{"byte": number(-1), "reply": number(0)}, `(?s)byte is -1.*reply is 0`},
		{"net.cut-reply", chaos.Params{"end": text("shrug")}, `must be one of close, reset`},
	}
	for _, tt := range tests {
		err := netKind(t, tt.fault).Check(tt.params)
		if err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
			t.Errorf("%s %v: got error %v, want %s", tt.fault, tt.params, err, tt.want)
		}
	}
}
