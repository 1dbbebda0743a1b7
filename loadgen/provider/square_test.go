package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// TestSquareSignsTheURL: the notification URL is part of what is signed, and its letters count.
func TestSquareSignsTheURL(t *testing.T) {
	p := find(t, "square")
	sign := func(url string) string {
		r := provider.Request{Body: []byte(`{"event_id":"1"}`)}
		p.Sign(&r, provider.Signing{Secrets: []string{"key"}, URL: url, Now: day})
		return r.Header.Get("x-square-hmacsha256-signature")
	}
	const url = "https://example.com/hook?a=%3A"
	if got, want := sign(url), base64.StdEncoding.EncodeToString(mac256("key", url+`{"event_id":"1"}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, other := range []string{"http://example.com/hook?a=%3A", "https://example.com/hook?a=:", "https://example.com/hook?a=%3a", ""} {
		if sign(other) == sign(url) {
			t.Errorf("%s and %s have one signature", other, url)
		}
	}
}

// TestSquareFirstDelivery: its time is the same on every attempt, and after the event.
func TestSquareFirstDelivery(t *testing.T) {
	p := find(t, "square")
	const name = "square-initial-delivery-timestamp"
	for n := range uint64(50) {
		first, retry := signed(p, deliveryOf(p, n, 1)), signed(p, deliveryOf(p, n, 5))
		if first.Header.Get(name) != retry.Header.Get(name) {
			t.Fatalf("%s is %s, then %s", name, first.Header.Get(name), retry.Header.Get(name))
		}
		at, err := time.Parse(time.RFC3339, first.Header.Get(name))
		created, err2 := time.Parse(time.RFC3339, text(t, first.Body, "created_at"))
		if err != nil || err2 != nil || at.Before(created) || at.Sub(created) > time.Minute {
			t.Fatalf("delivered at %v, created at %v (%v, %v)", at, created, err, err2)
		}
	}
}

// TestSquareObjects: the object of a body is the one that its data names, and payments add up.
func TestSquareObjects(t *testing.T) {
	p := find(t, "square")
	type money struct{ Amount int }
	for n := range uint64(400) {
		var body struct {
			Type string
			Data struct {
				Type, ID string
				Object   map[string]struct {
					ID      string
					OrderID string `json:"order_id"`
					Amount  money  `json:"amount_money"`
					Tip     money  `json:"tip_money"`
					Total   money  `json:"total_money"`
				}
			}
		}
		e := eventOf(n, uint32(n%3+1))
		if err := json.Unmarshal(signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body, &body); err != nil {
			t.Fatal(err)
		}
		object, ok := body.Data.Object[body.Data.Type]
		if !ok || object.ID != body.Data.ID && object.OrderID != body.Data.ID {
			t.Fatalf("%s: data %s %s, object %+v", body.Type, body.Data.Type, body.Data.ID, body.Data.Object)
		}
		if body.Data.Type == "payment" && (object.Amount.Amount == 0 || object.Total.Amount < object.Amount.Amount+object.Tip.Amount) {
			t.Fatalf("payment of %d with a tip of %d comes to %d", object.Amount.Amount, object.Tip.Amount, object.Total.Amount)
		}
	}
}
