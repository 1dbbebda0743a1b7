package tape

import (
	"net/http"
	"strings"

	"floodproof/loadgen/provider"
)

// guess tells who sent a request: the provider that the path names (/webhooks/stripe, whatever stands before and behind it), else the one whose headers
// it has. If the path names somebody unknown, that is better than nothing. Empty: nobody knows.
func guess(path string, h http.Header) string {
	named := ""
	_, rest, ok := strings.Cut(path, "/webhooks/")
	if ok {
		named, _, _ = strings.Cut(rest, "/")
		named, _, _ = strings.Cut(named, "?")
	}
	if _, ok := provider.Find(named); ok {
		return named
	}
	if p := signedBy(h); p != "" {
		return p
	}
	if isName(named) {
		return named
	}
	return ""
}

// signedBy is the provider with the most headers that not everybody sends, and among those with as many the one of which fewest are missing: Intercom's one header
// is one of GitHub's eight. Those that sign alike are told apart by nothing; the first of them it is.
func signedBy(h http.Header) string {
	best, most, fewest := "", 0, 0
	for _, p := range provider.All() {
		own := habits()[p.Name].own
		there := 0
		for _, name := range own {
			if len(h[name]) > 0 {
				there++
			}
		}
		if missing := len(own) - there; there > most || there == most && missing < fewest {
			best, most, fewest = p.Name, there, missing
		}
	}
	if most == 0 {
		return ""
	}
	return best
}

// isName reports whether a path segment looks like the name of a provider and not like a token.
func isName(segment string) bool {
	for i := range len(segment) {
		if c := segment[i]; c != '-' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return segment != "" && len(segment) <= 32
}
