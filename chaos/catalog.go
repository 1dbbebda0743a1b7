package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"floodproof/reports/ledger"
)

// ErrNotApplicable is wrapped by [Kind].New when the target lacks what the fault acts on: no processes of ours, a queue whose writes cannot be held. The caller
// puts a [NotApplicable] in the fault's place.
var ErrNotApplicable = errors.New("not applicable to this target")

// Kind is one entry of the catalogue: what a scenario may ask for by name.
type Kind struct {
	// Name is what a scenario writes: "worker.kill".
	Name string
	// Doc is one sentence for `floodproof list faults`.
	Doc string
	// Side is what the fault hits.
	Side ledger.Side
	// Role is the role of the processes that the fault needs ("worker"), empty if it needs none; a target without such a process cannot have this fault.
	Role string
	// Params are the parameters, in the order of the documentation.
	Params []Param
	// New makes the fault. Parameters that are not given take their defaults; all that is wrong with those given is reported at once. It
	// wraps [ErrNotApplicable] when Deps lacks what the fault acts on.
	New func(Params, Deps) (Fault, error)
}

// Param describes one parameter.
type Param struct {
	Name string
	Kind ParamKind
	// Default is written as in a scenario: "200ms", "1", "5%", "after".
	Default string
	// Doc says what it does and which values it takes.
	Doc string
}

// ParamKind is the type of a parameter.
type ParamKind string

const (
	// DurationParam is written "2s".
	DurationParam ParamKind = "duration"
	// NumberParam is written "3".
	NumberParam ParamKind = "number"
	// ShareParam is written "5%"; its value is between 0 and 1.
	ShareParam ParamKind = "share"
	// TextParam is a word.
	TextParam ParamKind = "text"
)

// Value is one parameter's value; which field counts is decided by the parameter's kind. A share stands in Number, 1 is 100%.
type Value struct {
	Duration time.Duration
	Number   float64
	Text     string
}

// Params are the values that a scenario gives, by name. Nil means defaults throughout.
type Params map[string]Value

// Deps is what faults act on. A nil field says that this target has no such thing.
type Deps struct {
	Fleet      Fleet
	Downstream Downstream
	Holder     Holder
	Flooder    Flooder
	// Rand seeds a generator for each fault while New runs and is not kept: the choices of one fault do not depend on how another one is
	// timed. Faults are therefore made in the scenario's order, by one goroutine. It is never nil.
	Rand *rand.Rand
}

// Check says what is wrong with a scenario's parameters, before there is anything to act on.
func (k Kind) Check(p Params) error {
	if _, err := k.New(p, Deps{}); err != nil && !errors.Is(err, ErrNotApplicable) {
		return err
	}
	return nil
}

// Catalog lists every fault, sorted by name. The slice is the caller's.
func Catalog() []Kind {
	kinds := []Kind{
		brokerFailoverKind(),
		brokerKillKind(),
		powerCutKind(),
		diskFullKind(),
		slowFsyncKind(),
		fsyncErrorKind(),
		downstreamOutageKind(),
		downstreamResetKind(),
		downstreamThrottleKind(),
		downstreamSlowKind(),
		downstreamHangKind(),
		downstreamRateLimitKind(),
		downstreamPoisonTypeKind(),
		forgedFloodKind(),
		queueHoldKind(),
		receiverKillKind(),
		workerKillKind(),
		workerKillAtEffectKind(),
	}
	kinds = append(kinds, pauseKinds()...)
	kinds = append(kinds, terminateKinds()...)
	kinds = append(kinds, rollingRestartKinds()...)
	kinds = append(kinds, crashKinds()...)
	kinds = append(kinds, starveKinds()...)
	kinds = append(kinds, outOfMemoryKinds()...)
	kinds = append(kinds, brokerExhaustKinds()...)
	kinds = append(kinds, clockKinds()...)
	kinds = append(kinds, netKinds()...)
	kinds = append(kinds, netPartitionKind())
	slices.SortFunc(kinds, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return kinds
}

// NotApplicable stands in a timeline for a fault that this target cannot have. It is recorded as such and never injected.
type NotApplicable struct {
	Kind Kind
	// Why is one sentence for the report.
	Why string
}

// Name is the name of the fault that it stands for.
func (n NotApplicable) Name() string { return n.Kind.Name }

// Side is the side of the fault that it stands for.
func (n NotApplicable) Side() ledger.Side { return n.Kind.Side }

// Inject refuses. A timeline does not call it.
func (n NotApplicable) Inject(context.Context, uint32) (string, func(context.Context) error, error) {
	return "", nil, fmt.Errorf("inject %s: %s: %w", n.Kind.Name, n.Why, ErrNotApplicable)
}

// spec is a kind as its fault declares it; kind completes it.
type spec struct {
	Kind
	needs need
	build func(*args, Deps) Fault
	// applies says what the run lacks for the fault beyond needs, nil if nothing. A nil function is that of a fault that lacks nothing.
	applies func(*args, Deps) error
}

// claimant is a fault as one that claims processes. It has a size, so that no two have the same address.
type claimant struct{ _ byte }

// need is what a fault acts on.
type need uint8

const (
	needsFleet need = 1 << iota
	needsDownstream
	needsHolder
	needsFlooder
	// needsBroker is known before the run: a broker is there or not, while receivers and workers come with the start.
	needsBroker
)

// kind gives a declared fault its New: the checks that are the same for all.
func (s spec) kind() Kind {
	k := s.Kind
	k.New = func(given Params, deps Deps) (Fault, error) {
		a, err := newArgs(k, given)
		if err != nil {
			return nil, err
		}
		if c, ok := deps.Fleet.(Claims); ok {
			deps.Fleet = c.For(new(claimant))
		}
		fault := s.build(a, deps)
		if err := errors.Join(a.errs...); err != nil {
			return nil, err
		}
		if err := s.needs.check(deps); err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		if s.applies != nil {
			if err := s.applies(a, deps); err != nil {
				return nil, fmt.Errorf("%s: %w: %w", k.Name, err, ErrNotApplicable)
			}
		}
		return fault, nil
	}
	return k
}

func (n need) check(d Deps) error {
	switch {
	case n&needsFleet != 0 && d.Fleet == nil:
		return fmt.Errorf("needs processes that this run started: %w", ErrNotApplicable)
	case n&needsBroker != 0 && (d.Fleet == nil || len(d.Fleet.Processes(roleBroker)) == 0):
		return fmt.Errorf("needs a queue with a server that this run started: %w", ErrNotApplicable)
	case n&needsDownstream != 0 && d.Downstream == nil:
		return fmt.Errorf("needs the recording downstream: %w", ErrNotApplicable)
	case n&needsHolder != 0 && d.Holder == nil:
		return fmt.Errorf("needs a queue whose writes can be held: %w", ErrNotApplicable)
	case n&needsFlooder != 0 && d.Flooder == nil:
		return fmt.Errorf("needs somebody who can send forgeries: %w", ErrNotApplicable)
	case d.Rand == nil:
		return errors.New("make the fault: no random generator was given")
	}
	return nil
}

// newArgs merges the given values over the defaults and refuses names that the fault does not know.
func newArgs(k Kind, given Params) (*args, error) {
	a := &args{fault: k.Name, values: make(Params, len(k.Params)), given: given}
	var known []string
	for _, p := range k.Params {
		known = append(known, p.Name)
		v, err := parseDefault(p)
		if err != nil {
			return nil, fmt.Errorf("%s: default of %s: %w", k.Name, p.Name, err)
		}
		a.values[p.Name] = v
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(known, name) {
			a.errs = append(a.errs, fmt.Errorf("%s: unknown parameter %q (known: %s)", k.Name, name, strings.Join(known, ", ")))
			continue
		}
		a.values[name] = given[name]
	}
	return a, nil
}
