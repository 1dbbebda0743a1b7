package harness

import (
	"bytes"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reports/ledger"
	"floodproof/scenarios"
)

func TestPatterns(t *testing.T) {
	for _, tt := range []struct {
		pattern, provider, eventType string
		want                         bool
	}{
		{"shopify/orders/updated", "shopify", "orders/updated", true},
		{"shopify/orders/updated", "shopify", "orders/create", false},
		{"shopify/orders/*", "shopify", "orders/create", true},
		{"shopify/orders/*", "shopify", "orders/", true},
		{"shopify/orders/*", "shopify", "products/update", false},
		{"shopify/orders/*", "stripe", "orders/create", false},
		{"*/orders/*", "woo", "orders/a/b", true},
		{"shopify/*", "shopify", "", true},
		{"shopify/*", "stripe", "x", false},
		{"*/*", "any", "thing", true},
		{"stripe/invoice.*.failed", "stripe", "invoice.payment.failed", true},
		{"stripe/invoice.*.failed", "stripe", "invoice.failed", false}, // the dots would overlap
		{"stripe/*a*b*", "stripe", "xaybz", true},
		{"stripe/*a*b*", "stripe", "xbya", false},
		{"stripe/aa*a", "stripe", "aa", false},
	} {
		if got := parsePattern(tt.pattern).fits(kind{tt.provider, tt.eventType}); got != tt.want {
			t.Errorf("%s fits %s of %s: got %t, want %t", tt.pattern, tt.eventType, tt.provider, got, tt.want)
		}
	}
}

func TestKinds(t *testing.T) {
	k := newKinds([]scenarios.Lane{
		{Name: "orders", Provider: "shopify", Type: "orders/*"}, {Name: "mail", Provider: "klaviyo"}, {Name: "orders", Provider: "stripe", Type: "charge.*"},
	})
	if diff := cmp.Diff([]string{"", "orders", "mail"}, laneNames(k.lanes)); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	for of, lane := range map[kind]uint8{
		{"shopify", "orders/create"}: 1, {"stripe", "charge.failed"}: 1, {"klaviyo", "event"}: 2, {"shopify", "products/update"}: 0, {"github", "push"}: 0,
	} {
		n := k.number(of)
		if n == 0 || n != k.number(of) || k.lane(n) != lane {
			t.Errorf("%v: number %d in lane %d, want one of its own in lane %d", of, n, k.lane(n), lane)
		}
		if got := k.fits(n, "shopify/*"); got != (of.provider == "shopify") {
			t.Errorf("%v: fits shopify/*: %t", of, got)
		}
	}
	if k.lane(0) != 0 || k.fits(0, "shopify/*") || !k.fits(0, "*/*") {
		t.Error("an event of no kind is in the default lane, and fits nothing but everything")
	}
	for i := range 1 << 17 {
		k.number(kind{"own", strconv.Itoa(i)})
	}
	if len(k.list) > 1<<16 || k.number(kind{"own", "one more"}) != 0 {
		t.Errorf("%d kinds are told apart, want at most %d, and the others to be of none", len(k.list), 1<<16)
	}
	if laneNames(nil) != nil {
		t.Error("a scenario without lanes has lanes")
	}
}

// TestLaneOfAnEvent: the ledger is told in which lane the scenario wants an event, by what was sent.
func TestLaneOfAnEvent(t *testing.T) {
	b, records := recordingBooks(t)
	b.kinds = newKinds([]scenarios.Lane{{Name: "orders", Provider: "shopify", Type: "orders/*"}})
	for i, eventType := range []string{"orders/create", "products/update", "orders/updated"} {
		b.EventType(uint32(i), "shopify", eventType)
		b.Event(ledger.Event{Number: uint32(i), ID: eventType})
	}
	b.Event(ledger.Event{Number: 3, ID: "untyped"})
	var lanes []uint8
	for _, r := range records() {
		if e, ok := r.(ledger.Event); ok {
			lanes = append(lanes, e.Lane)
		}
	}
	if diff := cmp.Diff([]uint8{1, 0, 1, 0}, lanes); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	if !b.fits(0, "shopify/orders/*") || b.fits(1, "shopify/orders/*") || b.fits(99, "shopify/orders/*") {
		t.Error("the sink is told the wrong events")
	}
}

// TestFloodsAmongDeliveries: forgeries of a flood come between the generator's deliveries, and every attempt is that of its own delivery.
func TestFloodsAmongDeliveries(t *testing.T) {
	b, records := recordingBooks(t)
	b.Event(ledger.Event{Number: 0, ID: "zero"})
	b.Event(ledger.Event{Number: 1, ID: "one"})
	b.Delivery(ledger.Delivery{Number: 0, Class: ledger.Genuine, First: 0, Count: 1})
	b.Forgery(3, ledger.Attempt{Status: 401, Result: ledger.Refused})
	b.Forgery(3, ledger.Attempt{Status: 200, Result: ledger.OK})
	b.Delivery(ledger.Delivery{Number: 1, Class: ledger.Genuine, First: 1, Count: 1})
	b.Attempt(ledger.Attempt{Delivery: 1, Try: 1, Status: 200, Result: ledger.OK, Then: ledger.Settled})
	b.Attempt(ledger.Attempt{Delivery: 0, Try: 1, Status: 503, Result: ledger.Refused, Then: ledger.Retry})
	want := []any{
		ledger.Event{Number: 0, ID: "zero"}, ledger.Event{Number: 1, ID: "one"},
		ledger.Delivery{Number: 0, Class: ledger.Genuine, First: 0, Count: 1},
		ledger.Delivery{Number: 1, Class: ledger.Forged, Provider: 3, First: ledger.None},
		ledger.Attempt{Delivery: 1, Try: 1, Status: 401, Result: ledger.Refused, Then: ledger.Exhausted},
		ledger.Delivery{Number: 2, Class: ledger.Forged, Provider: 3, First: ledger.None},
		ledger.Attempt{Delivery: 2, Try: 1, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		ledger.Delivery{Number: 3, Class: ledger.Genuine, First: 1, Count: 1},
		ledger.Attempt{Delivery: 3, Try: 1, Status: 200, Result: ledger.OK, Then: ledger.Settled},
		ledger.Attempt{Delivery: 0, Try: 1, Status: 503, Result: ledger.Refused, Then: ledger.Retry},
	}
	if diff := cmp.Diff(want, records()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if got := b.Tally(); got.Acked != 1 || got.Attempts != 4 || got.Refused != 2 {
		t.Errorf("tally %+v, want 1 acked by 4 attempts of which 2 were refused: forgeries ack nothing", got)
	}
}

// recordingBooks are books whose ledger can be read back, once.
func recordingBooks(t *testing.T) (b *books, records func() []any) {
	t.Helper()
	file := new(bytes.Buffer)
	w, err := ledger.Create(file, ledger.Header{Steps: []string{""}})
	if err != nil {
		t.Fatal(err)
	}
	return newBooks(w, 10, 1), func() (list []any) {
		if err := w.Close(ledger.End{}); err != nil {
			t.Fatal(err)
		}
		_, _, err := ledger.Read(file, ledger.Visitor{
			Event:    func(e *ledger.Event) { list = append(list, *e) },
			Delivery: func(d *ledger.Delivery) { list = append(list, *d) },
			Attempt:  func(a *ledger.Attempt) { list = append(list, *a) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
}
