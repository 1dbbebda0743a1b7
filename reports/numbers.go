package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"floodproof/reports/wording"
)

// none stands where nothing was measured. It is never a 0.
const none = wording.None

// optional writes a figure, or none for nil.
func optional(f *float64) string {
	if f == nil {
		return none
	}
	return wording.Figure(*f)
}

// withUnit writes an optional figure with its unit, none without one.
func withUnit(f *float64, unit string) string {
	if f == nil {
		return none
	}
	return wording.Figure(*f) + " " + unit
}

// size writes a number of bytes in decimal units.
func size(n *int64) string {
	if n == nil {
		return none
	}
	f := float64(*n)
	for _, u := range []string{"bytes", "kB", "MB", "GB"} {
		if math.Abs(f) < 1000 {
			return wording.Figure(f) + " " + u
		}
		f /= 1000
	}
	return wording.Figure(f) + " TB"
}

// span writes a length of time given in seconds: 0.35 s, 12.0 s, 3 min 20 s, 1 h 2 min.
func span(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0):
		return none
	case seconds < 10:
		return strconv.FormatFloat(seconds, 'f', 2, 64) + " s"
	case seconds < 100:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + " s"
	}
	s := int64(math.Round(seconds))
	switch {
	case s < 3600 && s%60 == 0:
		return fmt.Sprintf("%d min", s/60)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	default:
		return fmt.Sprintf("%d h %d min", s/3600, s/60%60)
	}
}

// scale writes a segment's compression.
func scale(f float64) string { return "×" + strconv.FormatFloat(f, 'f', -1, 64) }

// percentile writes 99.9 as p99.9.
func percentile(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// limit writes a limit as its author would: 200ms, 2s, 1m30s.
func limit(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// share writes a part of a whole in per cent. It never rounds to 0 or 100 what is not.
func share(part, whole int64) string {
	if whole <= 0 {
		return none
	}
	p := 100 * float64(part) / float64(whole)
	switch {
	case part == 0 || part == whole:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.01:
		return "< 0.01 %"
	case p > 99.99:
		return "> 99.99 %"
	case p < 1 || p > 99:
		return fmt.Sprintf("%.2f %%", p)
	default:
		return fmt.Sprintf("%.1f %%", p)
	}
}
