package provider

import (
	"encoding/hex"
	"math"
	"strconv"
	"time"
)

// Paddle's behaviour (Paddle Billing, live accounts), read in November 2026.
const (
	// Five seconds, a 200 and nothing else, up to 60 retries over 3 days with exponential back-off:
	// https://developer.paddle.com/webhooks/respond-to-webhooks
	paddleTimeout = 5 * time.Second
	paddleRetries = 60
	// The page computes the waits as 60 s times 1.1 to the power of the attempt. That makes 20 retries in the first hour, as the page says too, but 60 in 51 hours
	// instead of 3 days; the formula is taken, and marked as assumed.
	paddleFirstDelay = 60 * time.Second
	paddleGrowth     = 1.1
	// "The SDK helper methods enforce a five-second timestamp tolerance by default ...; manual implementations should apply the same check":
	// https://developer.paddle.com/webhooks/about/signature-verification
	// It is an age. The library for Go refuses dates ahead too, the documentation does not ask for it.
	paddleTolerance = 5 * time.Second
	// Not documented. Assumed.
	paddleAgent = "Paddle"
)

func paddleDelays() []time.Duration {
	d := make([]time.Duration, paddleRetries)
	for i := range d {
		d[i] = time.Duration(float64(paddleFirstDelay) * math.Pow(paddleGrowth, float64(i))).Round(time.Second)
	}
	return d
}

// newPaddle returns Paddle Billing. Each attempt is signed anew (assumed: with a tolerance of five seconds, retries over days could not work otherwise), once for each
// active secret.
func newPaddle() *Provider {
	r := &paddle{headers: headerNames("Content-Type", "User-Agent", "Accept"), signature: headerNames("Paddle-Signature")}
	slots := purchaseSlots(r)
	resolve := func(name string) slot[purchase] { return slots[name] }
	for _, k := range paddleKinds {
		r.objects = append(r.objects, mustCompile("paddle", k.body, resolve))
	}
	r.transactionItem = mustCompile("paddle", "transaction_item", resolve)
	r.transactionLine = mustCompile("paddle", "transaction_line", resolve)
	r.subscriptionItem = mustCompile("paddle", "subscription_item", resolve)
	r.event = mustCompile("paddle", "event", resolve)
	return &Provider{
		Name:        "paddle",
		CanonicalID: "/event_id",
		Timeout:     paddleTimeout,
		SuccessMin:  200, SuccessMax: 200,
		Delays: paddleDelays(), DelaysAssumed: true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		Tolerance: paddleTolerance,
		ID:        func(e Event) string { return string(appendULID(nil, "evt_", draw(e.Key, 1))) },
		Type:      func(e Event) string { return paddleKinds[paddleKindOf(e)].eventType(e) },
		Render:    r.render,
		Sign:      r.sign,
		Tamper:    tamperer("quantity", "expiry_year", "amount", "revision"),
		NewSecret: paddleSecret,
		PayloadOf: whole,
	}
}

// paddleKinds are the kinds of resources by how often they occur. The types are those of https://developer.paddle.com/webhooks/overview (November 2026).
var paddleKinds = []kind{
	{"transaction", "transaction.completed", "transaction.updated", 38},
	{"subscription", "subscription.created", "subscription.updated", 28},
	{"customer", "customer.created", "customer.updated", 16},
	{"address", "address.created", "address.updated", 12},
	{"adjustment", "adjustment.created", "adjustment.updated", 6},
}

func paddleKindOf(e Event) int { return weighted(paddleKinds, draw(e.ResourceDraw, 1)) }

// paddleSecret makes a secret as the dashboard shows it: pdl_ntfset_, the id of the destination, and 32 characters.
func paddleSecret(random [32]byte) string {
	var keys [4]uint64
	for i, b := range random {
		keys[i/8] = keys[i/8]<<8 | uint64(b)
	}
	secret := append(appendULID([]byte("pdl_ntfset_"), "", keys[0]), '_')
	for _, key := range keys[1:] {
		secret = appendBase62(secret, key, 11)
	}
	return string(secret[:len(secret)-1])
}

// appendULID appends a prefix and an id as Paddle makes them: a ULID (https://github.com/ulid/spec) in small letters. It holds all 64 bits of the key.
func appendULID(dst []byte, prefix string, key uint64) []byte {
	const digits = "0123456789abcdefghjkmnpqrstvwxyz"
	dst = append(append(dst, prefix...), "01k"...)
	for x, i := key, 0; i < 13; i++ {
		dst = append(dst, digits[x&31])
		x >>= 5
	}
	for x, i := draw(key, 1), 0; i < 10; i++ {
		dst = append(dst, digits[x&31])
		x >>= 5
	}
	return dst
}

// paddle holds the parts of an event's body; objects are in the order of paddleKinds.
type paddle struct {
	headers, signature                                        headers
	event, transactionItem, transactionLine, subscriptionItem *template[purchase]
	objects                                                   []*template[purchase]
	spare                                                     pool[purchase]
}

func (p *paddle) render(r *Request, d Delivery) {
	b := p.spare.get()
	defer p.spare.put(b)
	b.draw(standIn(d))
	p.headers.set(r, "application/json", paddleAgent, "*/*")
	start := len(r.Body)
	r.Body = p.event.append(r.Body, b)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// sign follows https://developer.paddle.com/webhooks/about/signature-verification (November 2026): ts=<seconds>;h1=<hex of HMAC-SHA256 over "ts:body">, one h1 for
// each active secret while one is being rotated.
func (p *paddle) sign(r *Request, with Signing) {
	value := strconv.AppendInt(append(make([]byte, 0, 160), "ts="...), with.Now.Unix(), 10)
	signed := append(append(make([]byte, 0, 24), value[3:]...), ':')
	secrets := with.Secrets
	if len(secrets) == 0 {
		secrets = []string{""}
	}
	for _, secret := range secrets {
		var mac [32]byte
		value = hex.AppendEncode(append(value, ";h1="...), sha256Sum(mac[:0], secret, signed, r.Body))
	}
	p.signature.set(r, string(value))
}
