package live

import (
	"fmt"
	"math"
	"strings"
	"time"

	"floodproof/reports/wording"
)

// frame is what one drawing needs: the newest snapshot and a short memory of the ones before.
type frame struct {
	now  Snapshot
	past []point
}

// point is one reading of the memory.
type point struct {
	at                      time.Duration
	acked, applied, backlog int64
}

const (
	// step is the time between two points, and so what one character of a sparkline stands for.
	step = time.Second
	// memory bounds the points that are kept.
	memory = 120
)

// add takes a new snapshot into the frame.
func (f *frame) add(s Snapshot) {
	f.now = s
	if n := len(f.past); n > 0 && s.Elapsed-f.past[n-1].at < step {
		return
	}
	f.past = append(f.past, point{s.Elapsed, s.Acked, s.Applied, s.Backlog})
	if n := len(f.past); n > memory {
		f.past = append(f.past[:0], f.past[n-memory:]...)
	}
}

// rates are the differences per second of one count along the memory.
func (f *frame) rates(of func(point) int64) []float64 {
	var out []float64
	for i := 1; i < len(f.past); i++ {
		a, b := f.past[i-1], f.past[i]
		if dt := (b.at - a.at).Seconds(); dt > 0 {
			out = append(out, float64(of(b)-of(a))/dt)
		}
	}
	return out
}

// backlog is the memory's backlog as numbers.
func (f *frame) backlog() []float64 {
	out := make([]float64, 0, len(f.past))
	for _, p := range f.past {
		out = append(out, float64(p.backlog))
	}
	return out
}

// style puts a meaning on a piece of text; it must not change its width.
type style func(meaning meaning, s string) string

type meaning uint8

const (
	strong meaning = iota
	faint
	good
	alarm
)

// bare is the style without colour.
func bare(_ meaning, s string) string { return s }

// ansi is the style with the terminal's own sixteen colours; bubbletea removes them where the terminal has none or
// NO_COLOR is set.
func ansi(m meaning, s string) string {
	code := [...]string{strong: "1", faint: "2", good: "32", alarm: "1;31"}[m]
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// line is a row of pieces; what does not fit into the width is cut off.
type line struct {
	b    strings.Builder
	left int
	st   style
}

func newLine(width int, st style) *line {
	l := &line{left: width, st: st}
	return l.plain("  ")
}

func (l *line) plain(s string) *line {
	s = wording.Cut(s, l.left)
	l.left -= len([]rune(s))
	l.b.WriteString(s)
	return l
}

func (l *line) styled(m meaning, s string) *line {
	if s = wording.Cut(s, l.left); s != "" {
		l.left -= len([]rune(s))
		l.b.WriteString(l.st(m, s))
	}
	return l
}

// render draws the frame: a function of its arguments alone. No line is wider than width; the number of lines is
// the same for all frames, so that the terminal only redraws what changed.
func render(f *frame, width int, st style) string {
	// The last column stays free: some terminals wrap when it is written.
	width = max(width-1, 10)
	s := f.now
	lines := []*line{
		title(s, width, st),
		bar(s, width, st),
		newLine(width, st),
		countLine(f, "sent", s.Sent, nil, width, st),
		countLine(f, "acked", s.Acked, func(p point) int64 { return p.acked }, width, st),
		countLine(f, "applied", s.Applied, func(p point) int64 { return p.applied }, width, st),
		backlogLine(f, width, st),
		healthLine(s, width, st),
		faultLine(s, width, st),
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimRight(l.b.String(), " ")
	}
	return strings.Join(out, "\n")
}

func title(s Snapshot, width int, st style) *line {
	l := newLine(width, st).styled(strong, wording.Clean(s.Scenario)).plain(" on "+wording.Clean(s.Backend)).styled(faint, " · ").plain(s.Phase.String())
	if s.Phase == Running && s.Segment != "" {
		l.plain(" "+wording.Clean(s.Segment)).styled(faint, " "+scale(s.Scale)+" · day ").plain(daytime(s.Day))
	}
	return l
}

// bar is the progress of the load: the share of the planned events that was sent.
func bar(s Snapshot, width int, st style) *line {
	share := 0.0
	if s.Planned > 0 {
		share = min(max(float64(s.Sent)/float64(s.Planned), 0), 1)
	}
	tail := fmt.Sprintf(" %3.0f %%  %s", math.Floor(share*100), clock(s.Elapsed))
	if s.Left > 0 {
		tail += ", about " + clock(s.Left) + " left"
	}
	// The bar keeps its length while the text beside it changes.
	n := max(min(width-2-len(" 100 %  1:02:03, about 1:02:03 left"), 50), 4)
	full := int(share * float64(n))
	return newLine(width, st).styled(good, strings.Repeat("█", full)).styled(faint, strings.Repeat("░", n-full)).plain(tail)
}

// column is where the sparklines begin.
const column = 36

func countLine(f *frame, name string, n int64, of func(point) int64, width int, st style) *line {
	l := newLine(width, st).styled(faint, pad(name)).plain(fmt.Sprintf("%12s", wording.Group(n)))
	if of == nil {
		return l.styled(faint, " of "+wording.Group(f.now.Planned))
	}
	rates := f.rates(of)
	now := 0.0
	if len(rates) > 0 {
		now = max(rates[len(rates)-1], 0)
	}
	return l.plain(fmt.Sprintf("%10s/s  ", wording.Group(int64(math.Round(now))))).plain(spark(rates, width-column))
}

func backlogLine(f *frame, width int, st style) *line {
	return newLine(width, st).styled(faint, pad("backlog")).plain(fmt.Sprintf("%12s", wording.Group(f.now.Backlog))).
		plain(strings.Repeat(" ", 14)).plain(spark(f.backlog(), width-column))
}

func healthLine(s Snapshot, width int, st style) *line {
	p99 := "–"
	if s.AckP99 > 0 {
		p99 = latency(s.AckP99)
	}
	return newLine(width, st).styled(faint, pad("ack p99")).plain(fmt.Sprintf("%12s", p99)).
		styled(faint, "   in flight ").plain(wording.Group(s.InFlight)).
		styled(faint, "   blocked ").plain(wording.Group(s.Blocked)).
		styled(faint, "   to retry ").plain(wording.Group(s.Retries))
}

func faultLine(s Snapshot, width int, st style) *line {
	l := newLine(width, st).styled(faint, pad("faults"))
	if len(s.Faults) == 0 {
		return l.styled(faint, fmt.Sprintf("%12s", "none"))
	}
	return l.plain("  ").styled(alarm, wording.Clean(strings.Join(s.Faults, ", ")))
}

func pad(name string) string { return fmt.Sprintf("%-8s", name) }

// spark draws the last n values as a row of blocks from 0 to their highest.
func spark(values []float64, n int) string {
	n = min(max(n, 0), len(values))
	values = values[len(values)-n:]
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, 0, n)
	for _, v := range values {
		i := 0
		if top > 0 {
			i = int(math.Round(max(v, 0) / top * float64(len(blocks)-1)))
		}
		out = append(out, blocks[i])
	}
	return string(out)
}
