package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"floodproof/loadgen/provider"

	"github.com/google/go-cmp/cmp"
)

// idsOf reads the canonical ids out of a request as a receiver does: with encoding/json and the documentation, sharing no code with the provider.
func idsOf(t testing.TB, p *provider.Provider, r *provider.Request) []string {
	t.Helper()
	decode := func(into any) {
		d := json.NewDecoder(bytes.NewReader(r.Body))
		d.UseNumber()
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s: %v in %s", p.Name, err, r.Body)
		}
	}
	switch p.Name {
	case "stripe":
		var event struct{ ID string }
		decode(&event)
		return []string{event.ID}
	case "shopify":
		return []string{r.Header.Get("X-Shopify-Event-Id")}
	case "github":
		return []string{r.Header.Get("X-GitHub-Delivery")}
	case "standard-webhooks", "standard-webhooks-ed25519":
		return []string{r.Header.Get("webhook-id")}
	case "svix":
		return []string{r.Header.Get("svix-id")}
	case "twilio":
		return []string{r.Header.Get("I-Twilio-Idempotency-Token")}
	case "gohighlevel":
		var event struct{ WebhookID string }
		decode(&event)
		return []string{event.WebhookID}
	case "slack", "square", "paddle":
		var event struct {
			EventID string `json:"event_id"`
		}
		decode(&event)
		return []string{event.EventID}
	case "paypal", "intercom":
		var event struct{ ID string }
		decode(&event)
		return []string{event.ID}
	case "mailgun":
		var body struct {
			Event struct{ ID string } `json:"event-data"`
		}
		decode(&body)
		return []string{body.Event.ID}
	case "sendgrid":
		var items []struct {
			ID string `json:"sg_event_id"`
		}
		decode(&items)
		var ids []string
		for _, item := range items {
			ids = append(ids, item.ID)
		}
		return ids
	case "adyen":
		var ids []string
		for _, item := range adyenItems(t, r.Body) {
			ids = append(ids, item.EventCode+":"+item.PSPReference)
		}
		return ids
	case "woocommerce":
		var object struct {
			ID       json.Number
			Modified string `json:"date_modified_gmt"`
		}
		decode(&object)
		return []string{r.Header.Get("X-WC-Webhook-Topic") + ":" + object.ID.String() + ":" + object.Modified}
	case "klaviyo":
		var batch struct {
			Data []struct {
				ExternalID string `json:"external_id"`
			}
		}
		decode(&batch)
		var ids []string
		for _, item := range batch.Data {
			ids = append(ids, item.ExternalID)
		}
		return ids
	case "hubspot":
		var items []map[string]any
		decode(&items)
		var ids []string
		for _, item := range items {
			property, _ := item["propertyName"].(string)
			ids = append(ids, fmt.Sprintf("%v:%v:%s:%v", item["subscriptionId"], item["objectId"], property, item["occurredAt"]))
		}
		return ids
	}
	t.Fatalf("no reader for %s", p.Name)
	return nil
}

// TestIDIsWhereCanonicalIDSays: what a receiver finds in the request is what ID promises.
func TestIDIsWhereCanonicalIDSays(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(80) {
			d := deliveryOf(p, n, 1)
			var want []string
			for i := range d.Events {
				d.Events[i].Broken = p.MaxBatch > 1 && (n+uint64(i))%5 == 0
				want = append(want, p.ID(d.Events[i]))
			}
			if diff := cmp.Diff(want, idsOf(t, p, signed(p, d))); diff != "" {
				t.Fatalf("%s (-ID +request):\n%s", p.Name, diff)
			}
		}
	}
}

// TestTypeIsWhereProvidersPutIt: the same for the event's type.
func TestTypeIsWhereProvidersPutIt(t *testing.T) {
	for _, p := range provider.All() {
		seen := map[string]bool{}
		for n := range uint64(600) {
			e := eventOf(n, 1+uint32(n%4))
			r := signed(p, provider.Delivery{Key: n, Attempt: 1, Events: []provider.Event{e}})
			var got string
			switch p.Name {
			case "twilio":
				got = twilioType(t, r.Body)
			case "intercom":
				got = text(t, r.Body, "topic")
			case "stripe", "standard-webhooks", "standard-webhooks-ed25519", "svix", "square", "gohighlevel":
				got = text(t, r.Body, "type")
			case "slack":
				var callback struct{ Event struct{ Type string } }
				if err := json.Unmarshal(r.Body, &callback); err != nil {
					t.Fatal(err)
				}
				got = callback.Event.Type
			case "paypal", "paddle":
				got = text(t, r.Body, "event_type")
			case "shopify":
				got = r.Header.Get("X-Shopify-Topic")
			case "hubspot":
				got = text(t, p.PayloadOf(r.Body, 0), "subscriptionType")
			case "mailgun", "sendgrid":
				got = text(t, p.PayloadOf(r.Body, 0), "event")
			case "adyen":
				got = adyenItems(t, r.Body)[0].EventCode
			case "woocommerce":
				got = r.Header.Get("X-WC-Webhook-Topic")
			case "github":
				got = r.Header.Get("X-GitHub-Event")
				if action := text(t, r.Body, "action"); action != "" {
					got += "." + action
				}
			case "klaviyo":
				got = text(t, p.PayloadOf(r.Body, 0), "topic")
			}
			if want := p.Type(e); got != want {
				t.Fatalf("%s: type %q in the request, %q by Type", p.Name, got, want)
			}
			seen[got] = true
		}
		if len(seen) < 4 {
			t.Errorf("%s: only the types %v", p.Name, seen)
		}
	}
}

// text returns a string member of a JSON object.
func text(t testing.TB, object []byte, member string) string {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatalf("%v in %s", err, object)
	}
	s, _ := members[member].(string)
	return s
}

// TestSameKeysSameBytes: a retry is rendered again, not remembered; different keys give different bytes.
func TestSameKeysSameBytes(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(50) {
			first, again := signed(p, deliveryOf(p, n, 1)), signed(p, deliveryOf(p, n, 1))
			if diff := cmp.Diff(first.Header, again.Header); diff != "" || !bytes.Equal(first.Body, again.Body) {
				t.Fatalf("%s: two renders differ:\n%s\n%s\n%s", p.Name, diff, first.Body, again.Body)
			}
			if bytes.Equal(first.Body, signed(p, deliveryOf(p, n+1, 1)).Body) {
				t.Fatalf("%s: two deliveries are equal", p.Name)
			}
			retry := signed(p, deliveryOf(p, n, 3))
			if same, want := bytes.Equal(first.Body, retry.Body), p.Name != "hubspot" && p.Name != "mailgun"; same != want {
				t.Fatalf("%s: the third attempt has the same body: %v, want %v", p.Name, same, want)
			}
			if p.Name == "hubspot" && !bytes.Equal(bytes.ReplaceAll(retry.Body, []byte(`"attemptNumber":2`), []byte(`"attemptNumber":0`)), first.Body) {
				t.Fatal("hubspot: a retry differs in more than attemptNumber")
			}
		}
	}
}

// TestRenderAppends: a request is reused without a trace of the one before.
func TestRenderAppends(t *testing.T) {
	for _, p := range provider.All() {
		want := signed(p, deliveryOf(p, 9, 1))
		r := signed(p, deliveryOf(p, 8, 1))
		r.Reset()
		p.Render(r, deliveryOf(p, 9, 1))
		p.Sign(r, provider.Signing{Secrets: []string{"secret"}, URL: "http://127.0.0.1:8080/webhooks/" + p.Name, Now: day})
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("%s: after Reset (-want +got):\n%s", p.Name, diff)
		}
		prefixed := provider.Request{Body: []byte("before")}
		d := deliveryOf(p, 9, 1)
		d.Malformed = true
		p.Render(&prefixed, d)
		if !bytes.HasPrefix(prefixed.Body, []byte("before"+string(want.Body[:20]))) {
			t.Errorf("%s: Render does not append", p.Name)
		}
	}
}

// TestRenderFromManyGoroutines: a provider is shared (run with -race).
func TestRenderFromManyGoroutines(t *testing.T) {
	for _, p := range provider.All() {
		want := signed(p, deliveryOf(p, 5, 1))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for n := range uint64(50) {
					signed(p, deliveryOf(p, n, 1))
					if got := signed(p, deliveryOf(p, 5, 1)); !bytes.Equal(got.Body, want.Body) {
						t.Errorf("%s: another body", p.Name)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

// TestSizes: bodies are as long as real ones.
func TestSizes(t *testing.T) {
	bands := map[string][2]int{
		"stripe": {1000, 5000}, "shopify": {6500, 10_000}, "hubspot": {200, 400}, "github": {5700, 25_000}, "klaviyo": {800, 1600},
		"standard-webhooks": {700, 1400}, "standard-webhooks-ed25519": {700, 1400}, "svix": {600, 2400}, "slack": {650, 2600}, "square": {400, 2400}, "paypal": {1500, 3000},
		"twilio": {270, 800}, "paddle": {450, 7500}, "intercom": {800, 3600}, "gohighlevel": {340, 1600},
		"mailgun": {700, 2200}, "sendgrid": {330, 800}, "adyen": {500, 1600}, "woocommerce": {900, 5500},
	}
	for _, p := range provider.All() {
		least, most := 1<<30, 0
		for n := range uint64(1200) {
			d := provider.Delivery{Key: n, Attempt: 1, Events: []provider.Event{eventOf(n, 1+uint32(n%6))}}
			r := signed(p, d)
			body := r.Body
			if !wellFormed(r) {
				t.Fatalf("%s: not what %s promises: %s", p.Name, r.Header.Get("Content-Type"), body)
			}
			least, most = min(least, len(body)), max(most, len(body))
		}
		if band := bands[p.Name]; least < band[0] || most > band[1] {
			t.Errorf("%s: bodies of %d to %d bytes, want %v", p.Name, least, most, band)
		}
	}
}

// TestVersionsShow: what the bytes show grows with the version, also within one second of the payload clock.
func TestVersionsShow(t *testing.T) {
	shown := map[string]func(*provider.Provider, *provider.Request) string{
		"stripe": func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "created") },

		"standard-webhooks":         func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "timestamp") },
		"standard-webhooks-ed25519": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "timestamp") },
		"svix":                      func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "timestamp") },
		"slack":                     func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "event_time") },
		"square":                    func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "created_at") },
		"paypal":                    func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "create_time") },

		"mailgun": func(p *provider.Provider, r *provider.Request) string {
			return number(t, p.PayloadOf(r.Body, 0), "timestamp")
		},
		"sendgrid": func(p *provider.Provider, r *provider.Request) string {
			return number(t, p.PayloadOf(r.Body, 0), "timestamp")
		},
		"adyen":       func(_ *provider.Provider, r *provider.Request) string { return adyenItems(t, r.Body)[0].EventDate },
		"woocommerce": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "date_modified_gmt") },

		"twilio":      func(_ *provider.Provider, r *provider.Request) string { return twilioVersion(t, r.Body) },
		"paddle":      func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "occurred_at") },
		"intercom":    func(_ *provider.Provider, r *provider.Request) string { return number(t, r.Body, "created_at") },
		"gohighlevel": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "timestamp") },

		"shopify": func(_ *provider.Provider, r *provider.Request) string { return text(t, r.Body, "updated_at") },
		"hubspot": func(p *provider.Provider, r *provider.Request) string {
			return number(t, p.PayloadOf(r.Body, 0), "occurredAt")
		},
		"github": func(_ *provider.Provider, r *provider.Request) string {
			var body struct {
				Repository struct {
					UpdatedAt string `json:"updated_at"`
				}
			}
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			return body.Repository.UpdatedAt
		},
		"klaviyo": func(p *provider.Provider, r *provider.Request) string {
			return string(p.PayloadOf(r.Body, 0))[strings.Index(string(p.PayloadOf(r.Body, 0)), `"timestamp":`):][:24]
		},
	}
	for _, p := range provider.All() {
		for n := range uint64(25) {
			var last string
			for v := uint32(1); v <= 12; v++ {
				e := eventOf(n, v)
				e.Key = scatter(n<<8 + uint64(v))
				now := shown[p.Name](p, signed(p, provider.Delivery{Key: n, Attempt: 1, Events: []provider.Event{e}}))
				if now == "" || now <= last {
					t.Fatalf("%s: version %d of resource %d shows %q after %q", p.Name, v, n, now, last)
				}
				last = now
			}
		}
	}
}

// number returns a numeric member of a JSON object as it is written.
func number(t testing.TB, object []byte, member string) string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		t.Fatal(err)
	}
	return string(members[member])
}

// TestOneResourceOneThing: versions of one resource are about the same thing, under different events.
func TestOneResourceOneThing(t *testing.T) {
	member := map[string][]string{"stripe": {"data", "object", "id"}, "shopify": {"id"}, "github": {"repository", "id"}, "standard-webhooks": {"data", "id"}, "square": {"data", "id"}, "woocommerce": {"id"}, "mailgun": {"event-data", "message", "headers", "message-id"}, "svix": {"data", "id"}, "paddle": {"data", "id"}, "intercom": {"data", "item", "id"}}
	for name, path := range member {
		p := find(t, name)
		for n := range uint64(60) {
			var first any
			for v := uint32(1); v <= 3; v++ {
				e := eventOf(n, v)
				e.Key = scatter(n<<8 + uint64(v))
				var at any
				if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, &at); err != nil {
					t.Fatal(err)
				}
				for _, key := range path {
					at = at.(map[string]any)[key]
				}
				if v == 1 {
					first = at
				}
				if at == nil || at != first {
					t.Fatalf("%s: resource %d is %v, then %v", name, n, first, at)
				}
			}
		}
	}
}

// TestShopifyDeliveryID belongs to the delivery and stays over its attempts; the event's id stays over deliveries.
func TestShopifyDeliveryID(t *testing.T) {
	p := find(t, "shopify")
	e := []provider.Event{eventOf(1, 1)}
	first := signed(p, provider.Delivery{Key: 1, Attempt: 1, Events: e}).Header
	retry := signed(p, provider.Delivery{Key: 1, Attempt: 2, Events: e}).Header
	other := signed(p, provider.Delivery{Key: 2, Attempt: 1, Events: e}).Header
	const id, event = "X-Shopify-Webhook-Id", "X-Shopify-Event-Id"
	if first.Get(id) != retry.Get(id) || first.Get(id) == other.Get(id) {
		t.Errorf("%s: %s, retry %s, other delivery %s", id, first.Get(id), retry.Get(id), other.Get(id))
	}
	if first.Get(event) != other.Get(event) {
		t.Errorf("%s: %s, other delivery %s", event, first.Get(event), other.Get(event))
	}
}

// TestShopifyAmounts add up as in a real order.
func TestShopifyAmounts(t *testing.T) {
	p := find(t, "shopify")
	lines := map[int]bool{}
	for n := range uint64(150) {
		var order struct {
			Subtotal json.Number `json:"subtotal_price"`
			Tax      json.Number `json:"total_tax"`
			Total    json.Number `json:"total_price"`
			Shipping []struct {
				Price json.Number `json:"price"`
			} `json:"shipping_lines"`
			Lines []struct {
				Price    json.Number
				Quantity int
			} `json:"line_items"`
		}
		body := signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{eventOf(n, 1)}}).Body
		if err := json.Unmarshal(body, &order); err != nil {
			t.Fatal(err)
		}
		cents := func(n json.Number) int {
			f, _ := n.Float64()
			return int(f*100 + 0.5)
		}
		sum := 0
		for _, line := range order.Lines {
			sum += cents(line.Price) * line.Quantity
		}
		total := sum + cents(order.Tax)
		for _, s := range order.Shipping {
			total += cents(s.Price)
		}
		if sum != cents(order.Subtotal) || total != cents(order.Total) {
			t.Fatalf("order %d: lines %d, subtotal %s, total %d of %s", n, sum, order.Subtotal, total, order.Total)
		}
		lines[len(order.Lines)] = true
	}
	if len(lines) < 3 {
		t.Errorf("numbers of lines: %v", lines)
	}
}

// TestMalformed bodies do not parse, carry a right signature, and are made also without an event.
func TestMalformed(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(100) {
			d := deliveryOf(p, n, 1)
			d.Malformed = true
			if n%2 == 0 {
				d.Events = nil
			}
			r := signed(p, d)
			if len(r.Body) < 50 || wellFormed(r) {
				t.Fatalf("%s: %d bytes, valid: %v", p.Name, len(r.Body), wellFormed(r))
			}
			again := provider.Request{Header: r.Header.Clone(), Body: slices.Clone(r.Body)} // Some sign a header that Render wrote.
			p.Sign(&again, provider.Signing{Secrets: []string{"secret"}, URL: "http://127.0.0.1:8080/webhooks/" + p.Name, Now: day})
			for name := range again.Header {
				if again.Header.Get(name) != r.Header.Get(name) {
					t.Fatalf("%s: %s is not that of the body", p.Name, name)
				}
			}
			p.Tamper(r.Body)
			p.PayloadOf(r.Body, 0)
		}
	}
}

// TestBrokenItem: valid JSON, of no use, and its neighbours are as they were.
func TestBrokenItem(t *testing.T) {
	p := find(t, "hubspot")
	d := provider.Delivery{Key: 1, Attempt: 1}
	for n := range uint64(9) {
		d.Events = append(d.Events, eventOf(n, 1+uint32(n%3)))
	}
	whole := signed(p, d).Body
	d.Events[4].Broken = true
	body := signed(p, d).Body
	var typed []struct {
		PropertyValue string `json:"propertyValue"`
	}
	if err := json.Unmarshal(body, &typed); !json.Valid(body) || err == nil {
		t.Errorf("valid: %v, decoded into strings: %v; want valid JSON and an error", json.Valid(body), err)
	}
	for i := range d.Events {
		item := p.PayloadOf(body, i)
		if i != 4 && !bytes.Equal(item, p.PayloadOf(whole, i)) {
			t.Errorf("item %d changed", i)
		}
		if i == 4 && text(t, item, "subscriptionType") != "" {
			t.Errorf("the broken item still has a type: %s", item)
		}
	}
}

// TestTamper keeps length, validity and id, and breaks every signature.
func TestTamper(t *testing.T) {
	for _, p := range provider.All() {
		for n := range uint64(100) {
			r := signed(p, deliveryOf(p, n, 1))
			before, ids := slices.Clone(r.Body), idsOf(t, p, r)
			p.Tamper(r.Body)
			changed := 0
			for i := range before {
				if before[i] != r.Body[i] {
					changed++
				}
			}
			if changed != 1 || !wellFormed(r) {
				t.Fatalf("%s: %d bytes changed, valid: %v", p.Name, changed, wellFormed(r))
			}
			if diff := cmp.Diff(ids, idsOf(t, p, r)); diff != "" {
				t.Fatalf("%s: Tamper changed an id:\n%s", p.Name, diff)
			}
		}
	}
}
