package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"floodproof/reports/compare"
)

// noises are how measurements of a shared machine scatter: evenly, with a long tail, with rounds that went wrong, and with a drift that hits both sides.
var noises = map[string]func(r *rand.Rand, round int) (old, changed float64){
	"normal": func(r *rand.Rand, _ int) (float64, float64) {
		return math.Exp(0.05 * r.NormFloat64()), math.Exp(0.05 * r.NormFloat64())
	},
	"long tail": func(r *rand.Rand, _ int) (float64, float64) { return 1 + 0.1*r.ExpFloat64(), 1 + 0.1*r.ExpFloat64() },
	"bad rounds": func(r *rand.Rand, _ int) (float64, float64) {
		bad := func() float64 {
			x := math.Exp(0.03 * r.NormFloat64())
			if r.IntN(10) == 0 {
				x *= 3
			}
			return x
		}
		return bad(), bad()
	},
	"drift": func(r *rand.Rand, round int) (float64, float64) {
		machine := math.Exp(0.5*math.Sin(float64(round)) + 0.2*r.NormFloat64())
		return machine * math.Exp(0.05*r.NormFloat64()), machine * math.Exp(0.05*r.NormFloat64())
	},
}

// flagged is the share of trials in which a slow-down of the new side is called a difference, and that in the right direction.
func flagged(t *testing.T, noise func(*rand.Rand, int) (float64, float64), rounds, trials int, slowdown float64) (any, right float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(15, uint64(rounds)))
	for trial := range trials {
		list := make([]compare.Round, rounds)
		for i := range list {
			old, changed := noise(r, i)
			list[i] = compare.Round{Old: 20 * old, New: 20 * changed * slowdown}
		}
		got, err := compare.Rounds(list, compare.Options{Seed: uint64(trial)})
		if err != nil {
			t.Fatal(err)
		}
		if got.Differs {
			any++
			if got.Ratio > 1 {
				right++
			}
		}
	}
	return any / float64(trials), right / float64(trials)
}

// TestSameAgainstSame: two sides that are the same differ in no more than 5 % of the experiments. A share of 400 experiments is itself uncertain by 1.1 %, of which
// two are allowed.
func TestSameAgainstSame(t *testing.T) {
	for name, noise := range noises {
		for _, rounds := range []int{6, 10, 20} {
			t.Run(fmt.Sprintf("%s, %d rounds", name, rounds), func(t *testing.T) {
				if got, _ := flagged(t, noise, rounds, 400, 1); got > 0.05+2*0.011 {
					t.Errorf("%.1f %% of experiments without a difference show one, want at most about 5 %%", 100*got)
				}
			})
		}
	}
}

// TestSlowDownIsFound: ten rounds find a fifth more in at least 95 % of the experiments, whatever the machine does to both sides. If every tenth measurement goes
// wrong by a factor of three, it takes twenty.
func TestSlowDownIsFound(t *testing.T) {
	for name, rounds := range map[string]int{"normal": 10, "drift": 10, "bad rounds": 20} {
		t.Run(name, func(t *testing.T) {
			if _, got := flagged(t, noises[name], rounds, 200, 1.2); got < 0.95 {
				t.Errorf("%.1f %% of experiments show a slow-down of 20 %%, want at least 95 %%", 100*got)
			}
		})
	}
}

// steady are rounds with these ratios.
func steady(ratios ...float64) []compare.Round {
	list := make([]compare.Round, len(ratios))
	for i, ratio := range ratios {
		list[i] = compare.Round{Old: 10, New: 10 * ratio}
	}
	return list
}

func TestResult(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rounds  []compare.Round
		options compare.Options
		change  string
		ratio   float64
	}{
		{"slower", steady(1.2, 1.21, 1.19, 1.2, 1.22, 1.18, 1.2), compare.Options{}, "+20.0 %", 1.2},
		{"faster", steady(0.5, 0.5, 0.5, 0.5, 0.5, 0.5), compare.Options{}, "-50.0 %", 0.5},
		{"equal", steady(1, 1, 1, 1, 1, 1), compare.Options{}, "~", 1},
		{"one round says otherwise", steady(1.2, 1.2, 0.99, 1.2, 1.2, 1.2), compare.Options{}, "~", 1.2},
		{"proved, and too small to matter", steady(1.01, 1.01, 1.01, 1.01, 1.01, 1.01), compare.Options{Least: 0.02}, "~", 1.01},
		{"proved, and just large enough", steady(1.03, 1.03, 1.03, 1.03, 1.03, 1.03), compare.Options{Least: 0.02}, "+3.0 %", 1.03},
		{"faster by too little", steady(0.99, 0.99, 0.99, 0.99, 0.99, 0.99), compare.Options{Least: 0.02}, "~", 0.99},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := compare.Rounds(tt.rounds, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if got.Change() != tt.change || math.Abs(got.Ratio-tt.ratio) > 1e-9 || got.Rounds != len(tt.rounds) {
				t.Errorf("got %v, want %s with the ratio %v", got, tt.change, tt.ratio)
			}
			if got.Low > got.Ratio || got.High < got.Ratio || !strings.Contains(got.String(), tt.change) {
				t.Errorf("the ratio is outside of its own interval, or the line leaves it out: %v", got)
			}
		})
	}
}

// TestSwapped: which side is called new changes the sign and nothing else; and a seed fixes the result.
func TestSwapped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		list, swapped := make([]compare.Round, 9), make([]compare.Round, 9)
		for i := range list {
			old, changed := noises["long tail"](r, i)
			list[i], swapped[i] = compare.Round{Old: old, New: changed * 1.1}, compare.Round{Old: changed * 1.1, New: old}
		}
		a, errA := compare.Rounds(list, compare.Options{Seed: 7})
		again, _ := compare.Rounds(list, compare.Options{Seed: 7})
		b, errB := compare.Rounds(swapped, compare.Options{Seed: 7})
		if errA != nil || errB != nil || a != again {
			t.Fatalf("errors %v, %v; one seed, two results: %v, %v", errA, errB, a, again)
		}
		if math.Abs(a.Ratio*b.Ratio-1) > 1e-9 || a.Old != b.New || a.New != b.Old {
			t.Fatalf("%v and, swapped, %v", a, b)
		}
	}
}

func TestRefused(t *testing.T) {
	good := steady(1, 1, 1, 1, 1, 1)
	bad := func(x compare.Round) []compare.Round { return append(steady(1, 1, 1, 1, 1), x) }
	for want, err := range map[string]error{
		"5 rounds prove nothing":  second(compare.Rounds(good[:5], compare.Options{})),
		"0 rounds prove nothing":  second(compare.Rounds(nil, compare.Options{})),
		"round 6 has the value 0": second(compare.Rounds(bad(compare.Round{Old: 1}), compare.Options{})),
		"value NaN":               second(compare.Rounds(bad(compare.Round{Old: math.NaN(), New: 1}), compare.Options{})),
		"value +Inf":              second(compare.Rounds(bad(compare.Round{Old: 1, New: math.Inf(1)}), compare.Options{})),
		"at least 8 for a confi":  second(compare.Rounds(good, compare.Options{Confidence: 0.99})),
		"confidence of 1 is none": second(compare.Rounds(good, compare.Options{Confidence: 1})),
		"least change of -1":      second(compare.Rounds(good, compare.Options{Least: -1})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
}

func second(_ compare.Result, err error) error { return err }
