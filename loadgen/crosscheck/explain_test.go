package crosscheck

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sideOf is a side with these p99, 1,000 requests and the given p99 of each round.
func sideOf(own, due, late time.Duration, rounds ...time.Duration) Side {
	s := newSide()
	s.Sent, s.OK, s.DueP99s = 1000, 1000, rounds
	for range 1000 {
		s.Own.add(own)
		s.Due.add(due)
		s.Late.add(late)
	}
	return s
}

func TestFindings(t *testing.T) {
	const ms = time.Millisecond
	blocked := func(s Side) Side { s.Busiest = 256; return s }
	free := func(s Side) Side { s.Busiest = 17; return s }
	silent := func(s Side) Side { s.OK, s.Unanswered = 0, 1000; return s }
	tests := []struct {
		name         string
		vegeta, ours Side
		want         []Effect
		meaningless  bool
		words        []string
	}{
		{"the same", sideOf(3*ms, 3*ms, 0, 3*ms, 3*ms), sideOf(3*ms, 3*ms, 0, 3*ms, 3*ms), []Effect{Agree}, false, []string{"agree"}},
		{"within a millisecond", sideOf(ms/10, ms/10, 0, ms/10), sideOf(ms, ms, 0, ms), []Effect{Agree}, false, nil},
		{
			"all workers wait", blocked(sideOf(2*ms, 1900*ms, 1800*ms, 1900*ms)), sideOf(2*ms, 1910*ms, 0, 1910*ms), []Effect{CoordinatedOmission, Agree}, false,
			[]string{"all 256 workers", "p99 of 2ms", "took 1.9s", "up to 1.8s late"},
		},
		{
			"workers free, sent late", free(sideOf(2*ms, 50*ms, 48*ms, 50*ms)), sideOf(2*ms, 50*ms, 0, 50*ms), []Effect{LateSender, Agree}, false,
			[]string{"workers free (at most 17 of 256", "up to 48ms late"},
		},
		{
			"ours late", sideOf(2*ms, 2*ms, 0, 2*ms), sideOf(2*ms, 50*ms, 48*ms, 50*ms), []Effect{GeneratorLate}, true,
			[]string{"48ms behind the due time", "mean nothing"},
		},
		{
			"both late", free(sideOf(2*ms, 50*ms, 48*ms, 50*ms)), sideOf(2*ms, 50*ms, 48*ms, 50*ms), []Effect{LateSender, GeneratorLate}, true, nil,
		},
		{"late, but not by ten milliseconds", sideOf(2*ms, 2*ms, 0, 2*ms), sideOf(2*ms, 2*ms, 9*ms, 2*ms), []Effect{Agree}, false, nil},
		{"further apart than rounds", sideOf(2*ms, 2*ms, 0, 2*ms, 3*ms), sideOf(9*ms, 9*ms, 0, 9*ms, 8*ms), []Effect{Different}, false, []string{"9.01ms for floodproof and 2ms for vegeta"}},
		{"rounds differ as much", sideOf(2*ms, 2*ms, 0, 2*ms, 12*ms), sideOf(9*ms, 9*ms, 0, 9*ms, 8*ms), []Effect{Unsteady}, false, []string{"differ by 10ms"}},
		{"nobody answers", silent(sideOf(2*ms, 2*ms, 0, 2*ms)), silent(sideOf(2*ms, 2*ms, 0, 2*ms)), []Effect{NoAnswers}, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &Result{Slots: 256, Rounds: 2, Vegeta: tt.vegeta, Floodproof: tt.ours}
			var got []Effect
			text := ""
			for _, f := range r.Findings() {
				got = append(got, f.Effect)
				text += f.Text + "\n"
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s\n%s", diff, text)
			}
			for _, want := range tt.words {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
			if r.Meaningless() != tt.meaningless {
				t.Errorf("meaningless %v, want %v", r.Meaningless(), tt.meaningless)
			}
		})
	}
}

func TestRoundsAddUp(t *testing.T) {
	s := newSide()
	for i := range 2 {
		r := newRound()
		for n := range 11 {
			r.sent(time.Duration(n) * 10 * time.Millisecond)
			r.answered(503, n > i)
			r.Due.add(time.Duration(1+i) * time.Millisecond)
		}
		s.add(r)
	}
	if s.Sent != 22 || s.Refused[503] != 3 || s.PerSecond != 100 || s.Due.TotalCount() != 22 {
		t.Errorf("%d sent, refused %v, %v a second, %d latencies; want 22, 3, 100, 22", s.Sent, s.Refused, s.PerSecond, s.Due.TotalCount())
	}
	if diff := cmp.Diff([]time.Duration{time.Millisecond, 2 * time.Millisecond}, s.DueP99s, cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 10*time.Microsecond })); diff != "" {
		t.Errorf("p99 of the rounds differ (-want +got):\n%s", diff)
	}
}

func TestJSON(t *testing.T) {
	empty := newSide()
	text, err := json.Marshal(&Result{URL: "http://127.0.0.1/", Rate: 5, Vegeta: empty, Floodproof: sideOf(time.Millisecond, time.Millisecond, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"url":"http://127.0.0.1/"`, `"vegeta":{"sent":0`, `"due_ms":{"count":0,"p50":null`, `"floodproof":{"sent":1000,"ok":1000,"refused":{}`,
		`"own_ms":{"count":1000,"p50":1,`, `"meaningless":false`, `"findings":[{"effect":"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nhas no %s", text, want)
		}
	}
}
