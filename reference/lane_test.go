package reference

import (
	"testing"
	"time"

	"floodproof/reference/queue"
)

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

func TestDebounceRules(t *testing.T) {
	fast, slow := queue.Debounce{Quiet: time.Second, MaxWait: time.Second}, queue.Debounce{Quiet: time.Minute, MaxWait: time.Hour, Edge: queue.Both}
	rules := []DebounceRule{{Provider: "shopify", Type: "products/*", Debounce: fast}, {Type: "*updated", Debounce: slow}}
	for _, tt := range []struct {
		job  queue.Job
		want queue.Debounce
	}{
		{queue.Job{Provider: "shopify", Type: "products/updated", Resource: "1"}, fast},
		{queue.Job{Provider: "shopify", Type: "orders/updated", Resource: "1"}, slow},
		{queue.Job{Provider: "stripe", Type: "invoice.paid", Resource: "1"}, queue.Debounce{}},
		{queue.Job{Provider: "shopify", Type: "products/updated"}, queue.Debounce{}},
		{queue.Job{Provider: "shopify", Type: "products/updated", Resource: "1", DeadOnArrival: "malformed"}, queue.Debounce{}},
	} {
		if got := debounceOf(rules, &tt.job); got != tt.want {
			t.Errorf("%+v: got %+v, want %+v", tt.job, got, tt.want)
		}
	}
	for name, rule := range map[string]DebounceRule{
		"nothing":      {Type: "a"},
		"short wait":   {Debounce: queue.Debounce{Quiet: time.Second, MaxWait: time.Millisecond}},
		"glob classes": {Type: "in[vx]oice", Debounce: fast},
		"edge":         {Debounce: queue.Debounce{Quiet: 1, MaxWait: 1, Edge: 9}},
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
