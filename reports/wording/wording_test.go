package wording_test

import (
	"math"
	"strings"
	"testing"

	"floodproof/reports/wording"
)

func TestWording(t *testing.T) {
	tests := []struct{ got, want string }{
		{wording.Group(0), "0"}, {wording.Group(999), "999"}, {wording.Group(1000), "1,000"}, {wording.Group(-1_234_567), "-1,234,567"},
		{wording.Plural(1, "event"), "1 event"}, {wording.Plural(0, "event"), "0 events"}, {wording.Plural(int64(2000), "event"), "2,000 events"},
		{wording.Plural(1, "family"), "1 family"}, {wording.Plural(2, "family"), "2 families"},
		{wording.Figure(0), "0"}, {wording.Figure(0.0421), "0.042"}, {wording.Figure(1.234), "1.23"}, {wording.Figure(34.14), "34.1"}, {wording.Figure(12_345), "12,345"},
		{wording.Figure(math.NaN()), wording.None}, {wording.Figure(math.Inf(-1)), wording.None}, {wording.Figure(1e18), "1e+18"},
		{wording.Clean("a\nb\x1b[2J\u202e"), "a b\uFFFD[2J\uFFFD"},
		{wording.Cut("eleven", 6), "eleven"}, {wording.Cut("eleven", 4), "ele…"}, {wording.Cut("eleven", 0), ""},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := map[string]struct {
		prefix, indent, text string
		want                 string
	}{
		"fits":                 {"- ", "  ", "a b", "- a b\n"},
		"breaks":               {"- ", "    ", "one two three", "- one two\n    three\n"},
		"to the last":          {"", "", "12345 7890", "12345 7890\n"},
		"a word too long":      {"- ", "  ", "a incomprehensible b", "- a\n  incomprehensible\n  b\n"},
		"characters, no bytes": {"", "", "äöüäö ßßßß", "äöüäö ßßßß\n"},
		"nothing":              {"- ", "  ", "", "-\n"},
	}
	for name, tt := range tests {
		if got := wording.Wrap(tt.prefix, tt.indent, strings.Fields(tt.text), 10); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
