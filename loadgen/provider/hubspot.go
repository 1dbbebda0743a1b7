package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// HubSpot's behaviour, read in November 2026.
const (
	// Five seconds to answer, up to 100 events in a request: https://developers.hubspot.com/docs/api-reference/latest/webhooks/guide (March 2026).
	hubspotTimeout  = 5 * time.Second
	hubspotMaxBatch = 100
	// Ten retries over 24 hours with varying delays: the same page. Both the intervals (doubling from about 85 s) and the size of the variation are assumed.
	hubspotRetries = 10
	hubspotTotal   = 24 * time.Hour
	hubspotJitter  = 0.25
	// Older requests are to be refused, of those dated ahead nothing is said: https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests
	hubspotTolerance = 300 * time.Second
	// Not documented by HubSpot; published by receivers, for example https://prismatic.io/docs/example-payloads/hubspot/triggers/webhook.json
	hubspotAgent = "HubSpot Connect 2.0 (http://dev.hubspot.com/) (namespace: webhooks-nio-http-client) - WebhooksExecutorDaemon-executor"
	// The app that all portals have installed.
	hubspotApp = 3_194_407
)

// hubspotMeanBatch is the mean of hubspotBatch. HubSpot publishes the maximum only; assumed.
const hubspotMeanBatch = 0.50*1 + 0.25*3.5 + 0.15*13 + 0.10*60.5

// hubspotBatch draws a batch size: half of the requests carry one event, a quarter 2 to 5, three in twenty 6 to 20, and one in ten 21 to 100 (an import, a
// workflow that touches a list). The shape is assumed.
func hubspotBatch(key uint64) int {
	r := draw(key, 1)
	switch q := draw(key, 2) % 100; {
	case q < 50:
		return 1
	case q < 75:
		return int(among(r, 2, 5))
	case q < 90:
		return int(among(r, 6, 20))
	default:
		return int(among(r, 21, hubspotMaxBatch))
	}
}

// exponential returns n delays that double and add up to total.
func exponential(n int, total time.Duration) []time.Duration {
	first := total / time.Duration(1<<n-1)
	d := make([]time.Duration, n)
	left := total
	for i := range n - 1 {
		d[i] = (first << i).Round(time.Second)
		left -= d[i]
	}
	d[n-1] = left
	return d
}

// newHubSpot returns HubSpot's app webhooks: an array of changes to contacts, companies and deals.
//
// The canonical id of an item is subscriptionId:objectId:propertyName:occurredAt (HubSpot does not promise that eventId is unique), with an empty
// propertyName for a creation. occurredAt grows with the version, so that no two items of one object share an id.
func newHubSpot() *Provider {
	r := &hubspot{
		headers: headerNames("Content-Type", "User-Agent", "Accept"),
		signature: headerNames("X-HubSpot-Signature-V3", "X-HubSpot-Request-Timestamp", "X-HubSpot-Signature",
			"X-HubSpot-Signature-Version"),
	}
	slots := changeSlots()
	resolve := func(name string) slot[change] { return slots[name] }
	r.creation = mustCompile("hubspot", "creation", resolve)
	r.property = mustCompile("hubspot", "property_change", resolve)
	r.broken = mustCompile("hubspot", "broken", resolve)
	return &Provider{
		Name:        "hubspot",
		CanonicalID: "/N/subscriptionId:/N/objectId:/N/propertyName:/N/occurredAt",
		Timeout:     hubspotTimeout,
		// Every 4xx and 5xx is a failure; what a 3xx is, HubSpot does not say. Taken as a failure here.
		SuccessMin: 200, SuccessMax: 299,
		Delays: exponential(hubspotRetries, hubspotTotal), DelaysAssumed: true, Jitter: hubspotJitter,
		MaxBatch: hubspotMaxBatch, MeanBatch: hubspotMeanBatch, BatchSize: hubspotBatch,
		// Ten requests under way for each app and account: https://developers.hubspot.com/docs/api/webhooks (January 2025).
		MaxInFlight: 10,
		Tolerance:   hubspotTolerance,
		ID:          hubspotID,
		Type:        hubspotType,
		Render:      r.render,
		Sign:        r.sign,
		Tamper:      tamperer("portalId"),
		PayloadOf:   item,
	}
}

func hubspotID(e Event) string {
	c := changeOf(e, 1)
	b := strconv.AppendUint(make([]byte, 0, 64), c.subscription(), 10)
	b = strconv.AppendUint(append(b, ':'), c.object(), 10)
	b = append(append(append(b, ':'), c.property()...), ':')
	return string(strconv.AppendInt(b, c.occurredAt(), 10))
}

func hubspotType(e Event) string {
	c := changeOf(e, 1)
	return c.eventType()
}

// hubspot holds the three shapes of an item.
type hubspot struct {
	headers, signature         headers
	creation, property, broken *template[change]
}

func (h *hubspot) render(r *Request, d Delivery) {
	h.headers.set(r, "application/json", hubspotAgent, "*/*")
	events := d.Events
	if len(events) == 0 {
		events = []Event{standIn(d)}
	}
	start := len(r.Body)
	r.Body = append(r.Body, '[')
	var c change
	for i, e := range events {
		if i > 0 {
			r.Body = append(r.Body, ',')
		}
		c = changeOf(e, d.Attempt)
		r.Body = h.shape(&c).append(r.Body, &c)
	}
	r.Body = append(r.Body, ']')
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// shape chooses the item's template. A broken item is valid JSON that nobody can act on: it has no subscriptionType, so that it does not say what happened
// to which kind of object, and its propertyValue is an object where every other is a string, so that a receiver that decodes the whole array into one
// type loses the good items with it. The four members of the id are as they should be.
func (h *hubspot) shape(c *change) *template[change] {
	switch {
	case c.e.Broken:
		return h.broken
	case c.e.Version <= 1:
		return h.creation
	default:
		return h.property
	}
}

// sign follows https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests (November 2026). A webhook carries version 3, base64 of
// HMAC-SHA256 over method, URI, body and the time in milliseconds, and for older receivers version 1, the SHA-256 of secret and body.
func (h *hubspot) sign(r *Request, with Signing) {
	secret := firstSecret(with)
	var at [20]byte
	stamp := strconv.AppendInt(at[:0], with.Now.UnixMilli(), 10)
	var v3, v1 [sha256.Size]byte
	sha256Sum(v3[:0], secret, []byte("POST"), []byte(signedURI(with.URL)), r.Body, stamp)
	plain := sha256.New()
	plain.Write([]byte(secret))
	plain.Write(r.Body)
	plain.Sum(v1[:0])
	h.signature.set(r, base64.StdEncoding.EncodeToString(v3[:]), string(stamp), hex.EncodeToString(v1[:]), "v1")
}

// signedURI decodes the escapes that HubSpot decodes before it signs: those of : / ? @ ! $ ' ( ) * , and ; and no others (the same page).
//
// Note: HubSpot's own client libraries do not decode. A receiver URL without escapes makes both agree.
func signedURI(uri string) string {
	const decoded = ":/?@!$'()*,;"
	if !strings.Contains(uri, "%") {
		return uri
	}
	out := make([]byte, 0, len(uri))
	for i := 0; i < len(uri); i++ {
		if uri[i] == '%' && i+2 < len(uri) {
			if c, err := strconv.ParseUint(uri[i+1:i+3], 16, 8); err == nil && bytes.IndexByte([]byte(decoded), byte(c)) >= 0 {
				out = append(out, byte(c))
				i += 2
				continue
			}
		}
		out = append(out, uri[i])
	}
	return string(out)
}
