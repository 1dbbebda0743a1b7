package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"floodproof/loadgen/provider"
)

// crosscheckOf runs `floodproof crosscheck`. Status 3 says that this machine was too slow, which a test cannot help; any other but 0 is an error.
func crosscheckOf(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	p := &Program{Args: append([]string{"crosscheck"}, args...), Stdout: &out, Stderr: &errs}
	status = p.Main(t.Context())
	if status != ExitPass && status != ExitUnknown {
		t.Fatalf("status %d: %s", status, &errs)
	}
	return out.String(), errs.String(), status
}

// signedEvents is an endpoint that answers 200 to what Stripe signed, else 401, and returns the ids that it has seen.
func signedEvents(t *testing.T, secret string) (url string, seen func() int) {
	t.Helper()
	stripe, _ := provider.Find("stripe")
	var mu sync.Mutex
	ids := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !signedByStripe(stripe, r.Header.Get("Stripe-Signature"), body, secret) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"id":"`), `"`)
		mu.Lock()
		defer mu.Unlock()
		ids[id] = true
	}))
	t.Cleanup(s.Close)
	return s.URL + "/webhooks/stripe", func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(ids)
	}
}

// TestCrosscheck: both generators send signed events, every one of them another: 2 rounds of 2 generators, 50 each.
func TestCrosscheck(t *testing.T) {
	t.Setenv("REAL", "whsec_real")
	url, seen := signedEvents(t, "whsec_real")
	stdout, stderr, status := crosscheckOf(t, url, "--rate", "100", "--for", "500ms", "--rounds", "2", "--provider", "stripe", "--secret", "stripe=env:REAL")
	for _, want := range []string{
		`/webhooks/stripe at 100/s for 500ms, 2 rounds each in turn, at most 256 in flight, seed [0-9]+\n`,
		`\nvegeta +100 +[0-9.]+ +0\n`, `\nfloodproof +100 +[0-9.]+ +0\n`,
		`\nvegeta, as it reports( +[0-9.]+){5}\n`, `\nvegeta, from the due time( +[0-9.]+){5}\n`, `\nfloodproof, from the due time( +[0-9.]+){5}\n`,
	} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("no %s in:\n%s", want, stdout)
		}
	}
	if late := strings.Contains(stdout, "mean nothing"); late != (status == ExitUnknown) {
		t.Errorf("status %d with:\n%s", status, stdout)
	}
	if !strings.HasSuffix(stderr, "round 4 of 4: floodproof sends for 500ms\n") {
		t.Errorf("progress is %q", stderr)
	}
	if seen() != 200 {
		t.Errorf("%d different events arrived, want 200", seen())
	}
}

// TestCrosscheckRefused: a wrong secret is refused, alike, and the errors say so.
func TestCrosscheckRefused(t *testing.T) {
	t.Setenv("WRONG", "whsec_wrong")
	url, seen := signedEvents(t, "whsec_real")
	flags := []string{url, "--rate", "50", "--for", "200ms", "--rounds", "1", "--provider", "stripe", "--secret", "stripe=env:WRONG"}
	stdout, _, _ := crosscheckOf(t, append(flags, "--json")...)
	type side struct {
		Sent    int
		Refused map[string]int
	}
	var got struct{ Vegeta, Floodproof side }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	for _, s := range []side{got.Vegeta, got.Floodproof} {
		if s.Sent != 10 || s.Refused["401"] != 10 {
			t.Errorf("%d sent, refused %v, want 10 and 10 with 401: %s", s.Sent, s.Refused, stdout)
		}
	}
	if stdout, _, _ = crosscheckOf(t, flags...); strings.Count(stdout, "(10 answered with 401)") != 2 {
		t.Errorf("not both sides say what failed:\n%s", stdout)
	}
	if seen() != 0 {
		t.Errorf("%d events arrived, want none", seen())
	}
}
