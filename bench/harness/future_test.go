package harness

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen"
	"floodproof/loadgen/provider"
	"floodproof/reference"
	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// served answers requests with a handler, without a network.
type served struct{ http.Handler }

func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), r.Body.Close()
}

// forgedDay plays a day of one provider, with many forgeries, to a receiver that looks so far into the future, and returns what the verdict says of them.
func forgedDay(t *testing.T, p *provider.Provider, future time.Duration) (verdict.Counts, verdict.Finding) {
	t.Helper()
	const events = 200
	secret := randomSecret(p)
	receiver, err := reference.NewReceiver(reference.ReceiverConfig{
		Queue: new(inMemory), FutureTolerance: future,
		Providers: map[string]reference.ProviderConfig{p.Name: {Secrets: []reference.Secret{reference.Secret(verification(p, secret))}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	w, err := ledger.Create(&file, ledger.Header{
		Providers: []ledger.Provider{{Name: p.Name, Timeout: p.Timeout}}, Steps: []string{""},
		Segments: []ledger.Segment{{Name: "day", Until: 24 * time.Hour, Scale: 500_000}, {Name: "tail", From: 24 * time.Hour, Scale: 60}},
		Expect:   ledger.Expect{Steps: 1}, Target: ledger.Target{Kind: "reference", Observer: "sink"},
	})
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := loadgen.NewDiurnal(loadgen.Diurnal{Events: events, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	g := &loadgen.Generator{
		Traffic: loadgen.Traffic{
			Seed: 3, RunID: p.Name, Events: events, Day: time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC), Schedule: schedule, VersionsPerResource: 2,
			Mix:    []loadgen.Share{{Provider: p, Weight: 1, Secrets: []string{secret}, URL: "http://hooks.test/webhooks/" + p.Name}},
			Inject: loadgen.Inject{Forged: 1},
		},
		Segments: []loadgen.Segment{{Name: "day", Until: 24 * time.Hour, Scale: 500_000}},
		Books:    newBooks(w, events, 1), Transport: served{receiver}, MaxInFlight: 1, // the queue is for one at a time
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(ledger.End{Drain: ledger.Drained, DrainWhy: "nothing was to be done"}); err != nil {
		t.Fatal(err)
	}
	v, err := verdict.Judge(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range v.Findings {
		if f.Invariant == "no-forgery" {
			return v.Counts, f
		}
	}
	t.Fatal("no-forgery was not judged")
	return verdict.Counts{}, verdict.Finding{}
}

// TestForgeriesFromTheFuture: our receiver refuses every signature that is dated further ahead than the provider's rule allows. A receiver that does not look
// at that accepts these forgeries and no others, and the verdict catches it; of a provider whose rule says nothing of it there are none to accept.
func TestForgeriesFromTheFuture(t *testing.T) {
	var looking []string
	for _, p := range provider.All() {
		if p.FutureTolerance > 0 {
			looking = append(looking, p.Name)
		}
		t.Run(p.Name, func(t *testing.T) {
			if counts, f := forgedDay(t, p, 0); f.Outcome != verdict.Pass || counts.Forged < 10 {
				t.Errorf("no-forgery %v with %d forgeries, want pass with many: %s", f.Outcome, counts.Forged, f.Observed)
			}
			counts, f := forgedDay(t, p, time.Hour)
			if p.FutureTolerance == 0 {
				if f.Outcome != verdict.Pass {
					t.Errorf("a receiver that accepts dates ahead, as the rule of this provider does, has no-forgery %v: %s", f.Outcome, f.Observed)
				}
				return
			}
			if f.Outcome != verdict.Fail || len(f.Examples) == 0 || !strings.Contains(f.Examples[0], "answered with success") {
				t.Errorf("a receiver that accepts dates ahead has no-forgery %v with the examples %q: %s", f.Outcome, f.Examples, f.Observed)
			}
			if share := float64(counts.ForgedAccepted) / float64(counts.Forged); share < 0.1 || share > 0.4 {
				t.Errorf("%d of %d forgeries were accepted, want about a fourth: those from the future", counts.ForgedAccepted, counts.Forged)
			}
		})
	}
	slices.Sort(looking)
	if want := []string{"slack", "standard-webhooks", "standard-webhooks-ed25519", "svix"}; !slices.Equal(looking, want) {
		t.Errorf("%q have a rule for dates ahead, want %q", looking, want)
	}
}

// TestFallbackOfAScenario: what a scenario says of a second URL is relative to the first, and a receiver takes what comes there: signed for that URL, and with the
// bytes that a dead letter of it would have to show.
func TestFallbackOfAScenario(t *testing.T) {
	c, err := newCast(load(t, "{twilio: 1}", "twilio: {fallback: '?half=2'}"))
	if err != nil {
		t.Fatal(err)
	}
	const first = "http://hooks.test/webhooks/twilio"
	second, err := c.fallback("twilio", first)
	if err != nil || second != first+"?half=2" {
		t.Fatalf("second URL %q, %v", second, err)
	}
	p, kept := c.providers["twilio"], new(inMemory)
	receiver, err := reference.NewReceiver(reference.ReceiverConfig{
		Queue: kept, Providers: map[string]reference.ProviderConfig{"twilio": {Secrets: []reference.Secret{reference.Secret(c.secrets["twilio"][0])}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := loadgen.NewDiurnal(loadgen.Diurnal{Events: 50, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	w, err := ledger.Create(io.Discard, ledger.Header{})
	if err != nil {
		t.Fatal(err)
	}
	g := &loadgen.Generator{
		Traffic: loadgen.Traffic{
			Seed: 3, RunID: "fallback", Events: 50, Day: time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC), Schedule: schedule,
			Mix: []loadgen.Share{{Provider: p, Weight: 1, Secrets: c.secrets["twilio"], URL: first, Fallback: second}},
		},
		Segments: []loadgen.Segment{{Name: "day", Until: 24 * time.Hour, Scale: 500_000}}, Books: newBooks(w, 50, 1), MaxInFlight: 1,
		Transport: served{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			receiver.ServeHTTP(w, r)
		})},
	}
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(kept.jobs) != 50 {
		t.Fatalf("%d of 50 events arrived at the second URL", len(kept.jobs))
	}
	sent := map[string]bool{}
	if err := g.Traffic.Payloads(func(uint32) bool { return true }, func(_ uint32, payload []byte) { sent[string(payload)] = true }); err != nil {
		t.Fatal(err)
	}
	for _, job := range kept.jobs {
		if !sent[string(job.Payload)] {
			t.Errorf("what was queued is not among what was sent: %s", job.Payload)
		}
	}
}

// TestPublishedDisable: a scenario can ask for the provider's own rule.
func TestPublishedDisable(t *testing.T) {
	c, err := newCast(load(t, "{slack: 1, intercom: 1}", "slack: {disable: published}"))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.providers["slack"].Disable; d.Window != time.Hour || d.Share != 0.95 || d.Events != 1000 || !c.disables {
		t.Errorf("slack gives up by %+v, want its published rule", d)
	}
	if d := c.providers["intercom"].Disable; d.After != 0 {
		t.Errorf("intercom, of which nobody asked it, gives up by %+v", d)
	}
}
