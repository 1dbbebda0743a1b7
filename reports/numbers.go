package reports

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// none stands where nothing was measured. It is never a 0.
const none = "–"

// group writes 1234567 as 1,234,567.
func group(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// plural writes 1 event, 2 events.
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return group(n) + " " + one + "s"
}

// figure writes a measured number with about three significant digits: 0.042, 1.23, 34.1, 312, 12,300.
func figure(f float64) string {
	switch a := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return none
	case a == 0:
		return "0"
	case a < 0.1:
		return strconv.FormatFloat(f, 'f', 3, 64)
	case a < 10:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case a < 100:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case a < 1e15:
		return group(int64(math.Round(f)))
	default:
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
}

// optional writes a figure, or none for nil.
func optional(f *float64) string {
	if f == nil {
		return none
	}
	return figure(*f)
}

// withUnit writes an optional figure with its unit, none without one.
func withUnit(f *float64, unit string) string {
	if f == nil {
		return none
	}
	return figure(*f) + " " + unit
}

// size writes a number of bytes in decimal units.
func size(n *int64) string {
	if n == nil {
		return none
	}
	f := float64(*n)
	for _, u := range []string{"bytes", "kB", "MB", "GB"} {
		if math.Abs(f) < 1000 {
			return figure(f) + " " + u
		}
		f /= 1000
	}
	return figure(f) + " TB"
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

// clean makes a foreign text safe for one line of a terminal: nothing in it can move the cursor, break the line or hide.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(n-1, 0)]) + "…"
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
