package wire

import "strings"

// The characters of a token, which header names and methods are (RFC 9110, section 5.6.2), as bits of their code: tokenLow from 0, tokenHigh from 64.
const (
	digits    = (1<<10 - 1) << '0'
	tokenLow  = digits | 1<<'!' | 1<<'#' | 1<<'$' | 1<<'%' | 1<<'&' | 1<<'\'' | 1<<'*' | 1<<'+' | 1<<'-' | 1<<'.'
	letters   = 1<<26 - 1
	tokenHigh = letters<<('A'-64) | letters<<('a'-64) | 1<<('^'-64) | 1<<('_'-64) | 1<<('`'-64) | 1<<('|'-64) | 1<<('~'-64)
)

// isToken reports whether s is a token.
func isToken(s string) bool {
	for i := range len(s) {
		low, high := uint64(tokenLow), uint64(tokenHigh)
		switch c := s[i]; {
		case c < 64 && low>>c&1 == 1:
		case c >= 64 && c < 128 && high>>(c-64)&1 == 1:
		default:
			return false
		}
	}
	return s != ""
}

// isText reports whether s may be a header's value or a reason phrase: no control character but the tab (RFC 9110, section 5.5).
func isText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// isVisible reports whether s has neither spaces nor control characters.
func isVisible(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// isASCII reports whether s has ASCII only.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// trimBlanks removes spaces and tabs at both ends.
func trimBlanks(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// hasOption reports whether a comma-separated list has the option, in any case.
func hasOption(list, option string) bool {
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, ",")
		if strings.EqualFold(trimBlanks(one), option) {
			return true
		}
	}
	return false
}

// shortened is s for an error message.
func shortened(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
