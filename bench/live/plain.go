package live

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"floodproof/reports/wording"
)

// heartbeat is the longest silence of the plain view.
const heartbeat = 5 * time.Second

// NewPlain returns a view for logs: one line at every change of phase, segment and faults, and one every five
// seconds. It writes no control characters.
func NewPlain(w io.Writer) View { return &plain{w: w} }

type plain struct{ w io.Writer }

// Run implements [View].
func (p *plain) Run(ctx context.Context, next func() Snapshot) error {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	var last Snapshot
	quiet := time.Now()
	for first := true; ; first = false {
		now := next()
		lines := changes(last, now, first)
		if len(lines) == 0 && time.Since(quiet) >= heartbeat {
			lines = append(lines, progress(now))
		}
		if len(lines) > 0 {
			quiet = time.Now()
		}
		for _, l := range lines {
			if _, err := fmt.Fprintf(p.w, "[%s] %s\n", clock(now.Elapsed), l); err != nil {
				return fmt.Errorf("write progress: %w", err)
			}
		}
		if last = now; now.Phase == Done {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// changes says in words what is different between two snapshots.
func changes(last, now Snapshot, first bool) []string {
	var lines []string
	if first || now.Phase != last.Phase {
		lines = append(lines, phaseLine(now))
	}
	if now.Segment != "" && now.Segment != last.Segment {
		lines = append(lines, fmt.Sprintf("segment %s at %s, from %s on the day's clock", wording.Clean(now.Segment), scale(now.Scale), daytime(now.Day)))
	}
	for _, f := range missing(last.Faults, now.Faults) {
		lines = append(lines, "fault "+wording.Clean(f)+" begins")
	}
	for _, f := range missing(now.Faults, last.Faults) {
		lines = append(lines, "fault "+wording.Clean(f)+" healed")
	}
	return lines
}

func phaseLine(s Snapshot) string {
	switch s.Phase {
	case Starting:
		return fmt.Sprintf("starting %s on %s", wording.Clean(s.Scenario), wording.Clean(s.Backend))
	case Running:
		return fmt.Sprintf("running %s on %s: %s events", wording.Clean(s.Scenario), wording.Clean(s.Backend), wording.Group(s.Planned))
	case Draining, Judging, Done:
		return s.Phase.String() + ": " + progress(s)
	default:
		return s.Phase.String()
	}
}

// missing returns the strings of next that have not as many equals in prev.
func missing(prev, next []string) []string {
	have := map[string]int{}
	for _, s := range prev {
		have[s]++
	}
	var out []string
	for _, s := range next {
		if have[s]--; have[s] < 0 {
			out = append(out, s)
		}
	}
	return out
}

// progress is a snapshot's numbers in one line.
func progress(s Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "sent %s of %s, acked %s, applied %s, backlog %s", wording.Group(s.Sent), wording.Group(s.Planned), wording.Group(s.Acked), wording.Group(s.Applied), wording.Group(s.Backlog))
	for _, x := range []struct {
		n    int64
		text string
	}{{s.InFlight, "in flight"}, {s.Blocked, "blocked"}, {s.Retries, "to retry"}} {
		if x.n > 0 {
			fmt.Fprintf(&b, ", %s %s", wording.Group(x.n), x.text)
		}
	}
	if s.AckP99 > 0 {
		b.WriteString(", ack p99 " + latency(s.AckP99))
	}
	if s.Left > 0 {
		b.WriteString(", about " + clock(s.Left) + " left")
	}
	return b.String()
}
