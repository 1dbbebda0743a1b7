package provider_test

import (
	"encoding/json"
	"mime"
	"net/url"
	"time"

	"floodproof/loadgen/provider"
)

// scatter is a bijection of 64 bits, so that keys are unique as the contract of Event.Key demands.
func scatter(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

var day = time.Date(2026, time.November, 2, 0, 0, 0, 0, time.UTC)

// eventOf is the n-th event of a day of a million, of its own resource.
func eventOf(n uint64, version uint32) provider.Event {
	return provider.Event{
		Number: uint32(n), Key: scatter(n*2 + 1), Draw: scatter(n*3 + 5), Resource: uint32(n), ResourceKey: scatter(n*2 + 2), ResourceDraw: scatter(n*3 + 7), Version: version,
		At: day.Add(time.Duration(n%1_000_000) * 86_400 * time.Microsecond),
	}
}

// deliveryOf is the n-th delivery: as many events as the provider would send, with versions from 1 to 4.
func deliveryOf(p *provider.Provider, n uint64, attempt int) provider.Delivery {
	d := provider.Delivery{Key: scatter(n + 1<<40), Attempt: attempt}
	for i := range p.BatchSize(scatter(n + 1<<41)) {
		m := n*128 + uint64(i)
		d.Events = append(d.Events, eventOf(m, uint32(m%4+1)))
	}
	return d
}

// wellFormed reports whether a body is what its content type promises.
func wellFormed(r *provider.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case err != nil:
		return false
	case kind == "application/x-www-form-urlencoded":
		_, err = url.ParseQuery(string(r.Body))
		return err == nil
	default:
		return json.Valid(r.Body)
	}
}
