package live

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// clean makes a name safe to print: one line, no control characters, so that a hostile name cannot move the cursor.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// cut shortens s to at most n characters and says so with an ellipsis.
func cut(s string, n int) string {
	r := []rune(s)
	switch {
	case len(r) <= n:
		return s
	case n <= 0:
		return ""
	default:
		return string(r[:n-1]) + "…"
	}
}

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

// clock writes a duration as 0:07, 12:34 or 1:02:03.
func clock(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// daytime writes an offset on the day's clock as 09:12.
func daytime(d time.Duration) string {
	m := int64(max(d, 0) / time.Minute)
	return fmt.Sprintf("%02d:%02d", m/60, m%60)
}

// scale writes 20 as ×20 and 2.5 as ×2.5.
func scale(f float64) string { return "×" + strconv.FormatFloat(f, 'f', -1, 64) }

// latency writes a duration with about three digits.
func latency(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}
