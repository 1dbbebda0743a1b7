package provider_test

import (
	"encoding/json"
	"testing"

	"floodproof/loadgen/provider"
)

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
