package chaos

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// args reads a fault's parameters and collects all that is wrong with them. A getter whose value is refused returns it nonetheless; New throws the fault away.
type args struct {
	fault  string
	values Params
	given  Params
	errs   []error
}

func (a *args) refuse(name, format string, v ...any) {
	a.errs = append(a.errs, fmt.Errorf("%s: %s "+format, append([]any{a.fault, name}, v...)...))
}

// isGiven reports whether the scenario wrote the parameter down.
func (a *args) isGiven(name string) bool {
	_, ok := a.given[name]
	return ok
}

func (a *args) duration(name string, least, most time.Duration) time.Duration {
	d := a.values[name].Duration
	if d < least || d > most {
		a.refuse(name, "is %v, must be between %v and %v", d, least, most)
	}
	return d
}

func (a *args) whole(name string, least, most int) int {
	n := a.values[name].Number
	if n != math.Trunc(n) || !(n >= float64(least) && n <= float64(most)) {
		a.refuse(name, "is %v, must be a whole number between %d and %d", n, least, most)
		return least
	}
	return int(n)
}

// share refuses 0 as well: a fault that touches nothing can only be vacuous.
func (a *args) share(name string) float64 {
	n := a.values[name].Number
	if !(n > 0 && n <= 1) {
		a.refuse(name, "is %v%%, must be more than 0%% and at most 100%%", 100*n)
	}
	return n
}

func (a *args) word(name string, choices ...string) string {
	w := a.values[name].Text
	if !slices.Contains(choices, w) {
		a.refuse(name, "is %q, must be one of %s", w, strings.Join(choices, ", "))
	}
	return w
}

// events reads which events are meant, "shopify/orders/*"; all of them, "*/*", is empty.
func (a *args) events(name string) string {
	text := a.values[name].Text
	if provider, kind, ok := strings.Cut(text, "/"); !ok || provider == "" || kind == "" {
		a.refuse(name, "is %q, must be a provider and a type, such as shopify/orders/*", text)
	}
	if text == "*/*" {
		return ""
	}
	return text
}

// parseDefault reads a default in the notation of scenarios.
func parseDefault(p Param) (Value, error) {
	switch p.Kind {
	case DurationParam:
		d, err := time.ParseDuration(p.Default)
		return Value{Duration: d}, err
	case NumberParam:
		n, err := strconv.ParseFloat(p.Default, 64)
		return Value{Number: n}, err
	case ShareParam:
		s, ok := strings.CutSuffix(p.Default, "%")
		if !ok {
			return Value{}, fmt.Errorf("share %q lacks its %%", p.Default)
		}
		n, err := strconv.ParseFloat(s, 64)
		return Value{Number: n / 100}, err
	case TextParam:
		return Value{Text: p.Default}, nil
	default:
		return Value{}, fmt.Errorf("unknown kind %q", p.Kind)
	}
}

// fork gives a fault a generator of its own; without a generator there is none, and New refuses.
func fork(r *rand.Rand) *rand.Rand {
	if r == nil {
		return nil
	}
	return rand.New(rand.NewPCG(r.Uint64(), r.Uint64()))
}
