package loadgen

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// The rules of single providers as they are published, played in virtual time. What is taken from where stands with each provider.

// played is a generator with one provider as it ships.
func played(t *testing.T, name string, schedule Schedule, events int) *Generator {
	t.Helper()
	p, ok := provider.Find(name)
	if !ok {
		t.Fatalf("no provider %q", name)
	}
	changeable := *p
	traffic := plain(schedule, events)
	traffic.Mix = []Share{share(&changeable, 1)}
	g, _ := bubble(t, traffic, []Segment{{Name: "real", Until: 24 * time.Hour, Scale: 1}}, nil)
	g.TailScale = 1
	return g
}

// seen is a request as a receiver sees it.
type seen struct {
	URL, Body, Num, Reason string
	At                     time.Duration
}

// front answers by URL and keeps what it saw.
type front struct {
	start  time.Time
	answer func(r seen) (status int, after time.Duration, location string)
	mu     sync.Mutex
	seen   []seen
}

func (f *front) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Host != r.URL.Host {
		return nil, fmt.Errorf("request for %s says Host: %s", r.URL, r.Host)
	}
	return receiver(func(r *http.Request, body []byte) (int, time.Duration, http.Header) {
		f.mu.Lock()
		defer f.mu.Unlock()
		s := seen{r.URL.String(), string(body), r.Header.Get("x-slack-retry-num"), r.Header.Get("x-slack-retry-reason"), time.Since(f.start)}
		f.seen = append(f.seen, s)
		status, after, location := f.answer(s)
		header := http.Header{}
		if location != "" {
			header.Set("Location", location)
		}
		return status, after, header
	}).RoundTrip(r)
}

// towards sends a generator's requests to such an answer, and returns what was seen, and the books.
func towards(t *testing.T, g *Generator, answer func(seen) (int, time.Duration, string)) (*front, *record) {
	t.Helper()
	f := &front{start: g.Start, answer: answer}
	g.Transport = f
	mustRun(t, g)
	books, ok := g.Books.(*record)
	if !ok {
		t.Fatal("other books")
	}
	return f, books
}

// results are those of a delivery's attempts.
func results(attempts []ledger.Attempt) []ledger.Attempt {
	var got []ledger.Attempt
	for _, a := range attempts {
		got = append(got, ledger.Attempt{Try: a.Try, Status: a.Status, Result: a.Result, Then: a.Then})
	}
	return got
}

const slackURL = "http://receiver.invalid/webhooks/slack"

// TestSlackFollowsTwoRedirects within one scheduled attempt, with the same bytes; a third is a failure, of which the retry tells.
func TestSlackFollowsTwoRedirects(t *testing.T) {
	chain := map[string]string{slackURL: "/second", "http://receiver.invalid/second": "https://elsewhere.invalid/third"}
	for _, tt := range []struct {
		name   string
		answer func(seen) (int, time.Duration, string)
		want   []ledger.Attempt
		urls   []string
	}{
		{"two", func(s seen) (int, time.Duration, string) {
			if to := chain[s.URL]; to != "" {
				return http.StatusFound, 0, to
			}
			return http.StatusOK, 0, ""
		}, []ledger.Attempt{
			{Try: 1, Status: 302, Result: ledger.Refused, Then: ledger.Retry}, {Try: 2, Status: 302, Result: ledger.Refused, Then: ledger.Retry},
			{Try: 3, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, []string{slackURL, "http://receiver.invalid/second", "https://elsewhere.invalid/third"}},
		{"three", func(s seen) (int, time.Duration, string) {
			if s.Num != "" {
				return http.StatusOK, 0, ""
			}
			return http.StatusMovedPermanently, 0, "/again"
		}, []ledger.Attempt{
			{Try: 1, Status: 301, Result: ledger.Refused, Then: ledger.Retry}, {Try: 2, Status: 301, Result: ledger.Refused, Then: ledger.Retry},
			{Try: 3, Status: 301, Result: ledger.Refused, Then: ledger.Retry}, {Try: 4, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, []string{slackURL, "http://receiver.invalid/again", "http://receiver.invalid/again", slackURL}},
		{"to nowhere", func(s seen) (int, time.Duration, string) {
			if s.Num != "" {
				return http.StatusOK, 0, ""
			}
			return http.StatusFound, 0, "mailto:nobody@receiver.invalid"
		}, []ledger.Attempt{
			{Try: 1, Status: 302, Result: ledger.Refused, Then: ledger.Retry}, {Try: 2, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		}, []string{slackURL, slackURL}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, books := towards(t, played(t, "slack", at{0}, 1), tt.answer)
				if diff := cmp.Diff(tt.want, results(books.of(0))); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				var urls []string
				for _, s := range f.seen {
					urls = append(urls, s.URL)
					if s.Body != f.seen[0].Body {
						t.Errorf("%s got another body", s.URL)
					}
				}
				if diff := cmp.Diff(tt.urls, urls); diff != "" {
					t.Errorf("URLs (-want +got):\n%s", diff)
				}
				last := f.seen[len(f.seen)-1]
				want := map[string]string{"two": "", "three": "too_many_redirects", "to nowhere": "http_error"}[tt.name]
				if last.Reason != want {
					t.Errorf("retried for %q, want %q", last.Reason, want)
				}
			})
		})
	}
}

// TestRedirectsShareTheTimeout: three seconds are for all of them together.
func TestRedirectsShareTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, books := towards(t, played(t, "slack", at{0}, 1), func(s seen) (int, time.Duration, string) {
			switch {
			case s.Num != "":
				return http.StatusOK, 0, ""
			case s.URL == slackURL:
				return http.StatusFound, 2 * time.Second, "/slow"
			}
			return http.StatusOK, 2 * time.Second, ""
		})
		a := books.of(0)
		if len(a) != 3 || a[1].Result != ledger.Unanswered || a[1].Done != 3*time.Second {
			t.Errorf("attempts %+v, want the second given up three seconds after the first began", a)
		}
	})
}

// TestOthersDoNotFollow: of no other provider are redirects known to be followed.
func TestOthersDoNotFollow(t *testing.T) {
	for _, p := range provider.All() {
		synctest.Test(t, func(t *testing.T) {
			f, _ := towards(t, played(t, p.Name, at{0}, 1), func(seen) (int, time.Duration, string) { return 302, 0, "/second" })
			for _, s := range f.seen {
				if follows := strings.HasSuffix(s.URL, "/second"); follows && p.Name != "slack" {
					t.Errorf("%s follows a redirect", p.Name)
				}
			}
		})
	}
}

// TestSlackSwitchesOff: more than 95 % failures within 60 minutes, unless there are fewer than 1,000 events an hour.
func TestSlackSwitchesOff(t *testing.T) {
	for _, tt := range []struct {
		name           string
		perHour        int
		goodOfHundred  int
		from           time.Duration
		disabled, asks bool
	}{
		{"everything fails", 1100, 0, 0, true, true},
		{"96 % fail", 1100, 4, 0, true, true},
		{"94 % fail", 1100, 6, 0, false, true},
		{"few events", 900, 0, 0, false, true},
		{"it fails from the second hour on", 1100, 0, time.Hour, true, true},
		{"nobody asks for it", 1100, 0, 0, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := played(t, "slack", evenly(time.Hour/time.Duration(tt.perHour)), 3*tt.perHour)
				g.DisableEndpoints = tt.asks
				requests := 0
				_, books := towards(t, g, func(s seen) (int, time.Duration, string) {
					requests++
					if s.At < tt.from || requests%100 < tt.goodOfHundred {
						return http.StatusOK, 0, ""
					}
					return http.StatusInternalServerError, 0, ""
				})
				i := slices.IndexFunc(books.attempts, func(a ledger.Attempt) bool { return a.Then == ledger.Disabled })
				if (i >= 0) != tt.disabled {
					t.Fatalf("disabled %t, want %t", i >= 0, tt.disabled)
				}
				if i < 0 {
					return
				}
				// In the last case 95 % of an hour with up to four attempts for each failed event have to be bad.
				earliest, latest := time.Hour, time.Hour+time.Minute
				if tt.from > 0 {
					earliest, latest = tt.from+50*time.Minute, tt.from+time.Hour+2*time.Minute
				}
				if at := books.attempts[i].Done; at < earliest || at > latest {
					t.Errorf("disabled after %v, want it between %v and %v", at, earliest, latest)
				}
				if p := g.Progress(); p.Disabled != 1 || p.Suppressed < int64(tt.perHour)/2 {
					t.Errorf("progress %+v, want what came later suppressed", p)
				}
			})
		})
	}
}

// failing answers so many requests with a status, and the rest with 200.
func failing(count, status int, after time.Duration) func(seen) (int, time.Duration, string) {
	return func(seen) (int, time.Duration, string) {
		if count--; count >= 0 {
			return status, after, ""
		}
		return http.StatusOK, after, ""
	}
}

// silence is the longest time between two requests, and where it ends.
func silence(f *front) (longest, until time.Duration) {
	for i := 1; i < len(f.seen); i++ {
		if gap := f.seen[i].At - f.seen[i-1].At; gap > longest {
			longest, until = gap, f.seen[i].At
		}
	}
	return longest, until
}

// TestIntercomPauses: more than 1,000 errors in a row within 15 minutes, and it sends nothing for 15 minutes.
func TestIntercomPauses(t *testing.T) {
	const gap = 100 * time.Millisecond
	for _, tt := range []struct {
		name   string
		gap    time.Duration
		count  int
		status int
		paused time.Duration
	}{
		{"1,001 errors", gap, 1001, 500, 15 * time.Minute},
		{"refusals are errors too", gap, 1001, 404, 15 * time.Minute},
		{"1,000 errors", gap, 1000, 500, 0},
		{"redirects are none", gap, 1001, 302, 0},
		{"in exactly 15 minutes", 900 * time.Millisecond, 1001, 500, 15 * time.Minute},
		{"in more", 901 * time.Millisecond, 1400, 500, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const events = 1500
				g := played(t, "intercom", evenly(tt.gap), events)
				g.Traffic.Mix[0].Provider.Delays = nil // so that retries do not stand in the row
				f, books := towards(t, g, failing(tt.count, tt.status, 0))
				longest, until := silence(f)
				if tt.paused == 0 {
					if longest != tt.gap {
						t.Errorf("nothing was sent for %v", longest)
					}
					return
				}
				if begin := 1000 * tt.gap; until != begin+tt.paused || longest != tt.paused {
					t.Errorf("nothing was sent for %v until %v, want %v after %v", longest, until, tt.paused, begin)
				}
				if p := g.Progress(); len(books.attempts) != events || p.Suppressed != 0 || p.Waiting != 0 || p.PendingRetries != 0 {
					t.Errorf("%d attempts of %d events, progress %+v", len(books.attempts), events, p)
				}
				for _, a := range books.attempts {
					if a.Due != a.Start {
						t.Fatalf("attempt %+v is late by the provider's own pause", a)
					}
				}
			})
		})
	}
}

// TestIntercomPauseHoldsAllBack: retries and what waits for a slot are put off as what becomes due; in the end every event arrives, in a compressed day as in a real one.
func TestIntercomPauseHoldsAllBack(t *testing.T) {
	for _, scale := range []float64{1, 7} {
		synctest.Test(t, func(t *testing.T) {
			const events = 2000
			g := played(t, "intercom", evenly(10*time.Millisecond), events)
			g.Segments[0].Scale, g.TailScale, g.MaxInFlight = scale, scale, 4
			f, books := towards(t, g, failing(1200, 503, 100*time.Millisecond))
			longest, _ := silence(f)
			if want := time.Duration(float64(15*time.Minute) / scale); longest < want-time.Second || longest > want+time.Second {
				t.Errorf("scale %v: nothing was sent for %v, want about %v", scale, longest, want)
			}
			settled := map[uint32]int{}
			tries := map[uint32]uint16{}
			for _, a := range books.attempts {
				if tries[a.Delivery]++; a.Try != tries[a.Delivery] {
					t.Fatalf("scale %v: attempt %+v is number %d of its delivery", scale, a, tries[a.Delivery])
				}
				if a.Then == ledger.Settled {
					settled[a.Delivery]++
				}
			}
			if p := g.Progress(); len(settled) != events || p.Waiting != 0 || p.PendingRetries != 0 || p.InFlight != 0 {
				t.Errorf("scale %v: %d of %d events arrived, progress %+v", scale, len(settled), events, p)
			}
		})
	}
}

// TestTwilioFallsBack: what the first URL does not take goes to the second at once, with the reason, signed for that URL; nothing follows a failure there.
func TestTwilioFallsBack(t *testing.T) {
	const second = "https://backup.invalid/twilio?half=2"
	for _, tt := range []struct {
		name          string
		fallback      string
		first, second int
		after         time.Duration
		code          string
		want          []ledger.Attempt
	}{
		{"refused", second, 500, 200, 0, "11200", []ledger.Attempt{
			{Try: 1, Status: 500, Result: ledger.Refused, Then: ledger.Retry}, {Try: 2, Status: 200, Result: ledger.OK, Then: ledger.Settled}}},
		{"no answer", second, 200, 204, time.Minute, "11205", []ledger.Attempt{
			{Try: 1, Result: ledger.Unanswered, Then: ledger.Retry}, {Try: 2, Status: 204, Result: ledger.OK, Then: ledger.Settled}}},
		{"refused twice", second, 404, 500, 0, "11200", []ledger.Attempt{
			{Try: 1, Status: 404, Result: ledger.Refused, Then: ledger.Retry}, {Try: 2, Status: 500, Result: ledger.Refused, Then: ledger.Exhausted}}},
		{"taken", second, 200, 500, 0, "", []ledger.Attempt{{Try: 1, Status: 200, Result: ledger.OK, Then: ledger.Settled}}},
		{"no second URL", "", 500, 200, 0, "", []ledger.Attempt{{Try: 1, Status: 500, Result: ledger.Refused, Then: ledger.Exhausted}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := played(t, "twilio", at{0}, 1)
				g.Traffic.Mix[0].Fallback = tt.fallback
				f, books := towards(t, g, func(s seen) (int, time.Duration, string) {
					if s.URL == second {
						return tt.second, 0, ""
					}
					return tt.first, tt.after, ""
				})
				if diff := cmp.Diff(tt.want, results(books.of(0))); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				if tt.code == "" {
					return
				}
				if wait := f.seen[1].At - f.seen[0].At; wait != min(tt.after, 15*time.Second) {
					t.Errorf("the second URL is asked %v after the first, want it at once", wait)
				}
				form, err := url.ParseQuery(f.seen[1].Body)
				if err != nil || form.Get("ErrorCode") != tt.code || form.Get("ErrorUrl") != "http://receiver.invalid/webhooks/twilio" || !strings.HasPrefix(f.seen[1].Body, f.seen[0].Body+"&") {
					t.Errorf("the second URL is told %q (%v), want what the first was told and %s", f.seen[1].Body, err, tt.code)
				}
			})
		})
	}
}
