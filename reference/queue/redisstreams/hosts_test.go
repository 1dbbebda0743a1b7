package redisstreams

import (
	"slices"
	"strings"
	"testing"
)

func TestSplitHosts(t *testing.T) {
	for address, want := range map[string]struct {
		first string
		hosts []string
	}{
		"redis://one:1":                         {"redis://one:1", []string{"one:1"}},
		"redis://one:1,two:2":                   {"redis://one:1", []string{"one:1", "two:2"}},
		"rediss://user:pass@one:1,two:2/3?db=4": {"rediss://user:pass@one:1/3?db=4", []string{"one:1", "two:2"}},
		"redis://one:1?a=b,c":                   {"redis://one:1?a=b,c", []string{"one:1"}},
		"nonsense":                              {"nonsense", nil},
	} {
		if first, hosts := splitHosts(address); first != want.first || !slices.Equal(hosts, want.hosts) {
			t.Errorf("%s: got %q and %q, want %q and %q", address, first, hosts, want.first, want.hosts)
		}
	}
}

// FuzzSplitHosts: nothing of an address gets lost.
func FuzzSplitHosts(f *testing.F) {
	f.Add("rediss://user:p%2Css@one:1,two:2/3?db=4")
	f.Add("redis://,,/")
	f.Fuzz(func(t *testing.T, address string) {
		first, hosts := splitHosts(address)
		if len(hosts) == 0 {
			if first != address {
				t.Errorf("%q became %q", address, first)
			}
			return
		}
		whole := strings.Join(hosts, ",")
		before, after, ok := strings.Cut(address, whole)
		for ok && before+hosts[0]+after != first { // the same text may stand in the password
			next, rest, found := strings.Cut(after, whole)
			before, after, ok = before+whole+next, rest, found
		}
		if !ok {
			t.Errorf("%q became %q with %q", address, first, hosts)
		}
	})
}
