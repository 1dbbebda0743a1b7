package provider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
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
