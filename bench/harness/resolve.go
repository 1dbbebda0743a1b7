package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"floodproof/chaos"
	"floodproof/loadgen"
	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
	"floodproof/scenarios"
)

// onTheWayIn are the sides whose faults may stand only in slow segments: in fast ones a provider's retries would be over before the fault is.
var onTheWayIn = map[ledger.Side]bool{ledger.Receiver: true, ledger.Ingress: true, ledger.Broker: true, ledger.Disk: true, ledger.Clock: true}

// Vocabulary are the names that this build's scenarios may use.
func Vocabulary() scenarios.Vocabulary {
	v := scenarios.Vocabulary{Batches: map[string]int{}, Faults: map[string]map[string]scenarios.ParamKind{}}
	for _, p := range provider.All() {
		v.Providers = append(v.Providers, p.Name)
		if p.MaxBatch > 1 {
			v.Batches[p.Name] = p.MaxBatch
		}
		if p.Fallback != nil {
			v.Fallbacks = append(v.Fallbacks, p.Name)
		}
		if p.Quota.Events > 0 {
			v.Quotas = append(v.Quotas, p.Name)
		}
	}
	for _, k := range chaos.Catalog() {
		params := map[string]scenarios.ParamKind{}
		for _, p := range k.Params {
			params[p.Name] = paramKind(p.Kind)
		}
		v.Faults[k.Name] = params
		if onTheWayIn[k.Side] {
			v.OnTheWayIn = append(v.OnTheWayIn, k.Name)
		}
	}
	return v
}

func paramKind(k chaos.ParamKind) scenarios.ParamKind {
	switch k {
	case chaos.DurationParam:
		return scenarios.DurationParam
	case chaos.NumberParam:
		return scenarios.NumberParam
	case chaos.ShareParam:
		return scenarios.ShareParam
	case chaos.TextParam:
		return scenarios.TextParam
	default:
		return 0
	}
}

// traffic turns the scenario's load into what the generator sends.
func (r *run) traffic() (loadgen.Traffic, error) {
	l := r.plan.Scenario.Load
	due, err := schedule(r.plan.Scenario, *r.plan.Seed)
	if err != nil {
		return loadgen.Traffic{}, err
	}
	t := loadgen.Traffic{
		Seed: *r.plan.Seed, RunID: r.plan.RunID,
		Events: l.Events, Day: l.Day, Schedule: due,
		VersionsPerResource: l.VersionsPerResource, Latest: l.Latest,
		Inject: loadgen.Inject(l.Inject), Mash: loadgen.Mash(l.Mash),
	}
	for _, share := range l.Mix {
		p, ok := r.cast.providers[share.Provider]
		if !ok {
			return loadgen.Traffic{}, fmt.Errorf("unknown provider %q", share.Provider)
		}
		to := r.target.url(r.links.address(chaos.LinkProviderReceiver, r.target.port.addr), p.Name)
		fallback, err := r.cast.fallback(p.Name, to)
		if err != nil {
			return loadgen.Traffic{}, err
		}
		t.Mix = append(t.Mix, loadgen.Share{Provider: p, Weight: share.Weight, Secrets: r.cast.secrets[p.Name], URL: to, Fallback: fallback})
	}
	return t, nil
}

func (r *run) segments() []loadgen.Segment {
	var list []loadgen.Segment
	for _, s := range r.plan.Scenario.Segments {
		list = append(list, loadgen.Segment{Name: s.Name, From: s.From, Until: s.Until, Scale: s.Scale})
	}
	return list
}

// steps turns the scenario's chaos into a timeline.
func (r *run) steps() ([]chaos.Step, error) {
	kinds := map[string]chaos.Kind{}
	for _, k := range chaos.Catalog() {
		kinds[k.Name] = k
	}
	deps := chaos.Deps{Fleet: r.fleet, Downstream: r.sink, Holder: r.target.holder(), Flooder: flooder{r}, Rand: rand.New(rand.NewPCG(*r.plan.Seed, 0xc4a05))}
	var steps []chaos.Step
	for _, f := range r.plan.Scenario.Chaos {
		fault, err := newFault(kinds[f.Name], f, deps)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", r.plan.Scenario.Name, f.Line, err)
		}
		steps = append(steps, chaos.Step{Fault: fault, Segment: f.Segment, At: f.At, For: f.For, Every: f.Every, Times: f.Times})
	}
	return steps, nil
}

func newFault(k chaos.Kind, f scenarios.Fault, deps chaos.Deps) (chaos.Fault, error) {
	if k.New == nil {
		return nil, fmt.Errorf("unknown fault %q", f.Name)
	}
	fault, err := k.New(params(f), deps)
	if errors.Is(err, chaos.ErrNotApplicable) {
		return chaos.NotApplicable{Kind: k, Why: err.Error()}, nil
	}
	return fault, err
}

// CheckFaults checks the parameters of every fault of a scenario, so that a wrong one is found when the scenario is loaded and not an hour later.
func CheckFaults(s *scenarios.Scenario) error {
	kinds := map[string]chaos.Kind{}
	for _, k := range chaos.Catalog() {
		kinds[k.Name] = k
	}
	var errs []error
	for _, f := range s.Chaos {
		k, ok := kinds[f.Name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s:%d: unknown fault %q", s.Name, f.Line, f.Name))
		} else if err := k.Check(params(f)); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", s.Name, f.Line, err))
		}
	}
	return errors.Join(errs...)
}

func params(f scenarios.Fault) chaos.Params {
	list := chaos.Params{}
	for name, p := range f.Params {
		list[name] = chaos.Value{Duration: p.Duration, Number: p.Number, Text: p.Text}
	}
	return list
}

// header says in the ledger what is run.
func (r *run) header(env ledger.Env) ledger.Header {
	s, claims := r.plan.Scenario, r.target.claims()
	env.BackendVersion, env.BackendSettings = claims.Version, r.target.broker.describe(claims.Settings)
	h := ledger.Header{
		Floodproof: r.plan.Version, RunID: r.plan.RunID,
		Scenario: s.Name, ScenarioText: s.Text, Seed: *r.plan.Seed,
		Backend: r.plan.Backend, Durability: string(claims.Durability),
		StartedAt: r.start.UTC().Truncate(time.Millisecond),
		Target:    ledger.Target{Kind: "reference", Name: "reference", Observer: "sink"},
		Steps:     stepNames(s.Steps),
		Lanes:     laneNames(s.Pipeline.Lanes),
		Expect:    r.expect(),
		Env:       env,
	}
	for _, share := range s.Load.Mix {
		if p, ok := r.cast.providers[share.Provider]; ok {
			h.Providers = append(h.Providers, ledger.Provider{Name: p.Name, OneShot: p.OneShot(), Timeout: p.Timeout})
		}
	}
	for _, seg := range s.Segments {
		h.Segments = append(h.Segments, ledger.Segment(seg))
	}
	last := s.Segments[len(s.Segments)-1].Until
	h.Segments = append(h.Segments, ledger.Segment{Name: "tail", From: last, Until: last, Scale: r.cast.tailScale()})
	return h
}

// stepNames are the steps that the sink knows; the first is the effect without a name.
func stepNames(steps []scenarios.Step) []string {
	names := []string{""}
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return names
}

// expectedSteps has a bit for each step, by its place in stepNames, that every event's effect has.
func expectedSteps(steps []scenarios.Step) uint8 {
	if len(steps) == 0 {
		return 1
	}
	return 1<<(len(steps)+1) - 2
}

func (r *run) expect() ledger.Expect {
	s := r.plan.Scenario
	e := s.Expect
	x := ledger.Expect{
		RequireFaults: r.plan.RequireFaults,
		Steps:         uint64(expectedSteps(s.Steps)), Delivered: e.Delivered, DeadLettersAccounted: e.DeadLettersAccounted,
		Ordered: e.Ordered, DebounceFinal: e.DebounceFinal, DebounceBounds: (*ledger.DebounceBounds)(e.DebounceBounds),
		Availability: e.Availability, Recovery: e.Recovery,
		LaneIsolation: (*ledger.LaneIsolation)(e.LaneIsolation), RateLimit: e.RateLimit,
	}
	for _, l := range e.Latency {
		x.Latency = append(x.Latency, ledger.LatencyLimit(l))
	}
	return x
}
