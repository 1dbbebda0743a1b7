package harness

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"floodproof/chaos"
	"floodproof/loadgen"
	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
	"floodproof/scenarios"
)

// besieged is a receiver that refuses everything but every tenth request, and a run in whose mix it is.
type besieged struct {
	*httptest.Server
	mu      sync.Mutex
	remotes map[string]bool
	got     int
	enough  chan struct{} // closed when 50 requests were answered
}

func (b *besieged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if from, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		b.remotes[from.Addr().String()] = true
	}
	if b.got++; b.got == 50 {
		close(b.enough)
	}
	if r.Header.Get("Stripe-Signature") == "" || r.URL.Path != "/webhooks/stripe" || b.got%10 != 0 {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func besiege(t *testing.T) (*besieged, *run, func() []any) {
	t.Helper()
	b := &besieged{remotes: map[string]bool{}, enough: make(chan struct{})}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	stripe, _ := provider.Find("stripe")
	records, read := recordingBooks(t)
	seed := uint64(1)
	r := &run{
		plan: Plan{Scenario: &scenarios.Scenario{}, Seed: &seed}, start: time.Now(), books: records, ledger: records.ledger, cast: &cast{},
		gen: &loadgen.Generator{Traffic: loadgen.Traffic{Mix: []loadgen.Share{{Provider: stripe, URL: b.URL + "/webhooks/stripe", Secrets: []string{"s"}}}}},
	}
	return b, r, read
}

// TestFlood: forgeries arrive until the flood is stopped, each of them and what became of it is in the ledger, and none is sent after that.
func TestFlood(t *testing.T) {
	b, r, read := besiege(t)
	stop, err := flooder{r}.Flood(t.Context(), chaos.Flood{Provider: "stripe", Rate: 1000})
	if err != nil {
		t.Fatal(err)
	}
	<-b.enough
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	got, remotes := b.got, maps.Clone(b.remotes)
	b.mu.Unlock()
	deliveries, refused, taken, cut := 0, 0, 0, 0
	for _, record := range read() {
		switch x := record.(type) {
		case ledger.Delivery:
			deliveries++
			if x.Class != ledger.Forged || x.Count != 0 {
				t.Errorf("delivery %+v, want a forgery without events", x)
			}
		case ledger.Attempt:
			switch x.Result {
			case ledger.Refused:
				refused++
			case ledger.OK:
				taken++
			case ledger.Unanswered: // the stop came first
				cut++
			case ledger.Unconnected:
				t.Errorf("attempt %+v", x)
			}
		}
	}
	if deliveries != refused+taken+cut || refused+taken > got || got > deliveries || taken+cut < 5 {
		t.Errorf("%d requests arrived; %d deliveries, %d refused, %d taken and %d cut off are in the ledger", got, deliveries, refused, taken, cut)
	}
	if sources := forgerSources(); len(sources) > 0 && (remotes["127.0.0.1"] || !remotes[sources[0].String()]) {
		t.Errorf("they came from %v, want addresses of their own", remotes)
	}
}

// TestFloodTurns: the flood keeps its rate, and what it missed while it stood still it lets go.
func TestFloodTurns(t *testing.T) {
	f := &flood{rate: 1000, next: time.Now().Add(time.Hour)}
	first := f.turn()
	for range 999 {
		f.turn()
	}
	if got := f.turn().Sub(first); got != time.Second {
		t.Errorf("the thousandth after the first is due %v later, want 1s", got)
	}
	f.next = time.Now().Add(-time.Hour)
	before := time.Now()
	if got := f.turn(); got.Before(before) {
		t.Errorf("after a pause of an hour the next is due %v ago, want now", before.Sub(got))
	}
}

// TestFloodRefuses what would flood somebody else, or nobody, or could be genuine.
func TestFloodRefuses(t *testing.T) {
	_, r, _ := besiege(t)
	r.cast.custom = nil
	far := r.gen.Traffic.Mix[0]
	for want, flood := range map[string]chaos.Flood{"sends nothing in this run": {Provider: "shopify", Rate: 1}, "is not on this machine": {Provider: "stripe", Rate: 1}} {
		r.gen.Traffic.Mix[0].URL = strings.Replace(far.URL, "127.0.0.1", "192.0.2.1", 1)
		if stop, err := (flooder{r}).Flood(t.Context(), flood); err == nil || stop != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got error %v, want %q", flood, err, want)
		}
	}
}
