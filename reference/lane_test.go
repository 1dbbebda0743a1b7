package reference

import "testing"

func TestLaneRules(t *testing.T) {
	rules := []LaneRule{
		{Provider: "stripe", Type: "invoice.*", Lane: "invoices"},
		{Type: "orders/*/paid", Lane: "paid"},
		{Type: "*test*", Lane: "tests"},
		{Provider: "shopify", Lane: "shop"},
	}
	for _, tt := range []struct{ provider, eventType, want string }{
		{"stripe", "invoice.paid", "invoices"},
		{"stripe", "invoice.", "invoices"},
		{"stripe", "invoice", ""},
		{"github", "invoice.paid", ""},
		{"shopify", "orders/eu/paid", "paid"},
		{"shopify", "orders/a/b/paid", "paid"},
		{"shopify", "orders/paid", "shop"},
		{"stripe", "a test", "tests"},
		{"shopify", "test", "tests"},
		{"shopify", "", "shop"},
		{"stripe", "", ""},
	} {
		if got := laneOf(rules, tt.provider, tt.eventType); got != tt.want {
			t.Errorf("%s %q: lane %q, want %q", tt.provider, tt.eventType, got, tt.want)
		}
	}
}

func TestLaneRulesThatCannotBeMeant(t *testing.T) {
	for name, rule := range map[string]LaneRule{
		"no lane":      {Provider: "stripe"},
		"control":      {Lane: "a\nb"},
		"dot":          {Lane: ".."},
		"glob classes": {Type: "in[vx]oice", Lane: "a"},
	} {
		if rule.check() == nil {
			t.Errorf("%s: %+v was taken", name, rule)
		}
	}
}

// FuzzMatches compares the pattern with what it means: every way to cut the text.
func FuzzMatches(f *testing.F) {
	for _, pattern := range []string{"", "*", "a*", "*a", "a*b*c", "**", "a**b"} {
		f.Add(pattern, "aabbcc")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 12 || len(text) > 24 {
			return
		}
		if got, want := matches(pattern, text), matchesSlowly(pattern, text); got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, text, got, want)
		}
	})
}

func matchesSlowly(pattern, text string) bool {
	if pattern == "" {
		return text == ""
	}
	if pattern[0] != '*' {
		return text != "" && text[0] == pattern[0] && matchesSlowly(pattern[1:], text[1:])
	}
	for i := range len(text) + 1 {
		if matchesSlowly(pattern[1:], text[i:]) {
			return true
		}
	}
	return false
}
