package reports

import (
	"fmt"
	"math"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// timeline is what both kinds of chart show of a run along time.
type timeline struct {
	// step is the seconds between two points; the rates are per second, their mean over the step; the backlog is its highest.
	step                             float64
	offered, acked, applied, backlog []float64
	end                              float64
	faults                           []band
	segments                         []stretch
}

// band is a fault's time, in seconds.
type band struct {
	from, until float64
	label       string
	status      string
}

// stretch is a segment's time, in seconds.
type stretch struct {
	from, until float64
	name        string
	scale       float64
	// fast: it was played faster than the slowest segment of the run.
	fast, gated bool
}

// maxShown bounds the points of a chart: about one for two pixels.
const maxShown = 450

func newTimeline(r *Report) *timeline {
	s := &r.Series
	k := (s.Len() + maxShown - 1) / maxShown
	k = max(k, 1)
	t := &timeline{step: s.step().Seconds() * float64(k)}
	for i := 0; i < s.Len(); i += k {
		j := min(i+k, s.Len())
		seconds := s.step().Seconds() * float64(j-i)
		t.offered = append(t.offered, total(s.Offered[i:j])/seconds)
		t.acked = append(t.acked, total(s.Acked[i:j])/seconds)
		t.applied = append(t.applied, total(s.Applied[i:j])/seconds)
		t.backlog = append(t.backlog, highest(s.Backlog[i:j]))
	}
	t.end = max(s.Duration().Seconds(), 1)
	t.addFaults(r.Verdict.Faults)
	t.addSegments(r)
	return t
}

func total(v []int64) float64 {
	n := int64(0)
	for _, x := range v {
		n += x
	}
	return float64(n)
}

func highest(v []int64) float64 {
	n := int64(0)
	for _, x := range v {
		n = max(n, x)
	}
	return float64(n)
}

func top(lists ...[]float64) float64 {
	m := 0.0
	for _, l := range lists {
		for _, v := range l {
			m = max(m, v)
		}
	}
	return m
}

func (t *timeline) addFaults(faults []verdict.Fault) {
	for _, f := range faults {
		if f.Status == "not-applicable" || !finite(f.AtS) || !finite(f.UntilS) {
			continue
		}
		label := wording.Clean(f.Fault)
		if f.Target != "" {
			label += " " + wording.Clean(f.Target)
		}
		from := min(max(f.AtS, 0), t.end)
		t.faults = append(t.faults, band{from, min(max(f.UntilS, from), t.end), wording.Cut(label, 40), f.Status})
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

func (t *timeline) addSegments(r *Report) {
	slowest := math.Inf(1)
	for _, s := range r.Verdict.Segments {
		slowest = min(slowest, s.Scale)
	}
	for _, s := range r.Verdict.Segments {
		if !finite(s.FromS) || !finite(s.UntilS) || s.UntilS <= s.FromS {
			continue
		}
		from := min(max(s.FromS, 0), t.end)
		t.segments = append(t.segments, stretch{from, min(max(s.UntilS, from), t.end), wording.Clean(s.Name), s.Scale, s.Scale > slowest, s.Gated})
	}
	if r.End == nil || r.Series.Len() == 0 {
		return
	}
	if from := (r.End.DrainFrom - r.Series.Origin).Seconds(); from > 0 && from < t.end {
		t.segments = append(t.segments, stretch{from: from, until: t.end, name: "drain", scale: 1})
	}
}

// title is what hovering over a step shows.
func (t *timeline) title(i int) string {
	s := clock(float64(i) * t.step)
	if t.step > 1 {
		s += "–" + clock(float64(i+1)*t.step)
	}
	return fmt.Sprintf("%s  offered %s/s, acked %s/s, applied %s/s, backlog %s", s, wording.Figure(t.offered[i]), wording.Figure(t.acked[i]), wording.Figure(t.applied[i]), wording.Figure(t.backlog[i]))
}

// place puts labels into rows so that none covers another: want is where each should begin, length how long it is, room
// where the row ends. A label that finds no place among rows gets row -1. It returns a row and a begin for each.
func place(want, length []float64, room float64, rows int) (row []int, begin []float64) {
	type taken struct{ from, until float64 }
	const gap = 8
	used := make([][]taken, rows)
	row, begin = make([]int, len(want)), make([]float64, len(want))
	for i := range want {
		row[i], begin[i] = -1, max(min(want[i], room-length[i]), 0)
		for r := range used {
			free := true
			for _, u := range used[r] {
				free = free && (begin[i] >= u.until+gap || begin[i]+length[i]+gap <= u.from)
			}
			if free {
				used[r] = append(used[r], taken{begin[i], begin[i] + length[i]})
				row[i] = r
				break
			}
		}
	}
	return row, begin
}
