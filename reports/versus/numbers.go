package versus

import (
	"math"
	"strconv"
	"strings"
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

// figure writes a number with about three significant digits: 0.042, 1.23, 34.1, 312, 12,300.
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

// plural writes 1 round, 2 rounds.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return group(int64(n)) + " " + one + "s"
}

// clean makes a foreign text safe for one line of a terminal.
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
