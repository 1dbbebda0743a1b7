package chaos

import (
	"fmt"
	"slices"
)

// victims are the processes of a role that a fault chooses anew at each injection: all, or some at random.
type victims struct {
	fleet Fleet
	role  string
	all   bool
	count int
	// perm orders the numbers below n at random. It is not used if all are meant.
	perm func(n int) []int
}

// choose chooses, in the fleet's order. verb says what for, in errors.
func (v victims) choose(verb string) ([]Process, error) {
	procs := v.fleet.Processes(v.role)
	if len(procs) == 0 {
		return nil, fmt.Errorf("find a %s to %s: none runs", v.role, verb)
	}
	if v.all {
		return procs, nil
	}
	if v.count > len(procs) {
		return nil, fmt.Errorf("%s %d of role %s: only %d run", verb, v.count, v.role, len(procs))
	}
	chosen := v.perm(len(procs))[:v.count]
	slices.Sort(chosen)
	var list []Process
	for _, i := range chosen {
		list = append(list, procs[i])
	}
	return list, nil
}

// victimParams are the parameters of the faults that choose; they is what happens to those that are chosen.
func victimParams(they string) []Param {
	return []Param{
		{Name: "which", Kind: TextParam, Default: "random", Doc: "random or all: which " + they + "."},
		{Name: "count", Kind: NumberParam, Default: "1", Doc: "How many " + they + " at random; not together with which: all."},
	}
}

// victimsOf reads them.
func victimsOf(role string, a *args, d Deps) victims {
	all, count := killArgs(a)
	return victims{fleet: d.Fleet, role: role, all: all, count: count, perm: newLottery(d.Rand).perm}
}

// as finds an optional part of every process, or says which one lacks it.
func as[Part any](procs []Process, verb string) ([]Part, error) {
	var parts []Part
	for _, p := range procs {
		part, ok := p.(Part)
		if !ok {
			return nil, fmt.Errorf("%s %s: this one cannot", verb, p.Name())
		}
		parts = append(parts, part)
	}
	return parts, nil
}
