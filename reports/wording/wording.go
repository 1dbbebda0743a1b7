// Package wording writes words and numbers as people read them on a terminal: what every report of ours does alike, whatever it reports.
package wording

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// None stands where nothing was measured. It is never a 0.
const None = "–"

// Group writes 1234567 as 1,234,567.
func Group(n int64) string {
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

// Plural writes 1 event, 2,000 events, 2 families.
func Plural[N int | int64](n N, one string) string {
	stem, ending := one, "s"
	if s, ok := strings.CutSuffix(one, "y"); ok {
		stem, ending = s, "ies"
	}
	if n == 1 {
		stem, ending = one, ""
	}
	return Group(int64(n)) + " " + stem + ending
}

// Figure writes a measured number with about three significant digits: 0.042, 1.23, 34.1, 312, 12,300; None for what is no number.
func Figure(f float64) string {
	switch a := math.Abs(f); {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return None
	case a == 0:
		return "0"
	case a < 0.1:
		return strconv.FormatFloat(f, 'f', 3, 64)
	case a < 10:
		return strconv.FormatFloat(f, 'f', 2, 64)
	case a < 100:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case a < 1e15:
		return Group(int64(math.Round(f)))
	default:
		return strconv.FormatFloat(f, 'g', 3, 64)
	}
}

// Clean makes a foreign text safe for one line of a terminal: nothing in it can move the cursor, break the line or hide.
func Clean(s string) string {
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

// Cut shortens s to at most n characters, and says so by an ellipsis, for which there is no room in 0.
func Cut(s string, n int) string {
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

// Wrap writes words behind a prefix, broken so that no line is longer than width where words allow it. Lines but the first begin with indent, and the last ends with a newline.
func Wrap(prefix, indent string, words []string, width int) string {
	var b strings.Builder
	b.WriteString(prefix)
	column := utf8.RuneCountInString(prefix)
	for i, word := range words {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > width:
			b.WriteString("\n" + indent)
			column = utf8.RuneCountInString(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
