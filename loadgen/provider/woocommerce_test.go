package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"floodproof/loadgen/provider"
)

// TestWooCommerceVector: WooCommerce publishes none; these were computed with openssl dgst -sha256 -hmac from the rule in
// https://github.com/woocommerce/woocommerce/blob/00e1bc4/plugins/woocommerce/includes/class-wc-webhook.php (November 2026).
func TestWooCommerceVector(t *testing.T) {
	check := func(secret, body, want string) {
		r := provider.Request{Body: []byte(body)}
		find(t, "woocommerce").Sign(&r, provider.Signing{Secrets: []string{secret}, Now: day})
		if got := r.Header.Get("X-WC-Webhook-Signature"); got != want {
			t.Errorf("%s under %q: got %s, want %s", body, secret, got, want)
		}
	}
	check("woo_secret", `{"id":1}`, "WyBH8a9xS3AfEC1IoarpcVkoInLGQSgn7IpOt75rui8=")
	v := vectorNamed(t, "woocommerce")
	check(v.Secret, v.Body, v.Signature)
}

// TestWooCommerceDecodesSecret: the entities that WordPress stores are decoded before signing, once.
func TestWooCommerceDecodesSecret(t *testing.T) {
	for stored, key := range map[string]string{
		"a&amp;b": "a&b", "&lt;x&gt;": "<x>", "&quot;&#039;": `"'`, "&amp;lt;": "&lt;", "&#060;&#38;": "<&#38;", "plain": "plain",
	} {
		r := provider.Request{Body: []byte(`{"id":1}`)}
		find(t, "woocommerce").Sign(&r, provider.Signing{Secrets: []string{stored}, Now: day})
		if got, want := r.Header.Get("X-WC-Webhook-Signature"), base64.StdEncoding.EncodeToString(mac256(key, `{"id":1}`)); got != want {
			t.Errorf("%s is not decoded to %s", stored, key)
		}
	}
}

// TestWooCommerceDeliveryID: events of one topic in one second share it, and nothing else does.
func TestWooCommerceDeliveryID(t *testing.T) {
	p := find(t, "woocommerce")
	type key struct {
		topic  string
		second int64
	}
	byID, byKey, shared := map[string]key{}, map[key]string{}, 0
	for n := range uint64(3000) {
		e := eventOf(n, 1+uint32(n%2))
		r := signed(p, provider.Delivery{Key: scatter(n), Attempt: 1, Events: []provider.Event{e}})
		id, k := r.Header.Get("X-WC-Webhook-Delivery-ID"), key{p.Type(e), e.At.Unix()}
		if before, seen := byID[id]; seen && before != k || len(id) != 32 {
			t.Fatalf("%s is the delivery of %v and of %v", id, before, k)
		}
		if before, seen := byKey[k]; seen {
			shared++
			if before != id {
				t.Fatalf("%v has the deliveries %s and %s", k, before, id)
			}
		}
		byID[id], byKey[k] = k, id
	}
	if shared < 100 {
		t.Errorf("%d of 3000 deliveries share their id with another, want more at twelve a second", shared)
	}
}

// TestWooCommerceDates: the same instant in the shop's time and in GMT, without a zone; nothing is modified before it is created.
func TestWooCommerceDates(t *testing.T) {
	p := find(t, "woocommerce")
	for n := range uint64(300) {
		body := signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{eventOf(n, 1+uint32(n%4))}}).Body
		at := func(member string) time.Time {
			parsed, err := time.Parse("2006-01-02T15:04:05", text(t, body, member))
			if err != nil {
				t.Fatalf("%s: %v", member, err)
			}
			return parsed
		}
		for _, member := range []string{"date_created", "date_modified"} {
			if offset := at(member + "_gmt").Sub(at(member)); offset != 4*time.Hour {
				t.Fatalf("%s is %v from GMT", member, offset)
			}
		}
		if at("date_modified").Before(at("date_created")) {
			t.Fatalf("modified %v, created %v", at("date_modified"), at("date_created"))
		}
	}
}

// TestWooCommerceAmounts add up as in a real order.
func TestWooCommerceAmounts(t *testing.T) {
	p := find(t, "woocommerce")
	orders := 0
	for n := range uint64(300) {
		e := eventOf(n, 1)
		if p.Type(e) != "order.created" {
			continue
		}
		orders++
		var order struct {
			Total    json.Number
			Tax      json.Number                   `json:"total_tax"`
			Shipping json.Number                   `json:"shipping_total"`
			Lines    []struct{ Total json.Number } `json:"line_items"`
		}
		if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, &order); err != nil {
			t.Fatal(err)
		}
		cents := func(n json.Number) int {
			f, _ := n.Float64()
			return int(f*100 + 0.5)
		}
		sum := cents(order.Tax) + cents(order.Shipping)
		for _, line := range order.Lines {
			sum += cents(line.Total)
		}
		if sum != cents(order.Total) || len(order.Lines) == 0 {
			t.Fatalf("order %d: %d lines, %d of %s", n, len(order.Lines), sum, order.Total)
		}
	}
	if orders < 100 {
		t.Errorf("%d orders of 300 events", orders)
	}
}

// TestWooCommerceWritesAsPHP: every slash is escaped and every byte is ASCII, as json_encode leaves them.
func TestWooCommerceWritesAsPHP(t *testing.T) {
	p := find(t, "woocommerce")
	escapes := 0
	for n := range uint64(400) {
		body := string(signed(p, deliveryOf(p, n, 1)).Body)
		for i, c := range body {
			if c >= utf8.RuneSelf || c == '/' && body[i-1] != '\\' {
				t.Fatalf("%q at %d of %s", c, i, body)
			}
		}
		escapes += strings.Count(body, `\u00`)
	}
	if escapes == 0 {
		t.Error("nothing was escaped: the vocabulary has names like François")
	}
}
