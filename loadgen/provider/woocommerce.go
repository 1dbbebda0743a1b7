package provider

import (
	"crypto/md5"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// WooCommerce's behaviour as its source shows it, read in November 2026 (annotated for version 11.2):
// https://github.com/woocommerce/woocommerce/blob/00e1bc4/plugins/woocommerce/includes/class-wc-webhook.php
const (
	// deliver() passes timeout => MINUTE_IN_SECONDS, httpversion => '1.0', redirection => 0.
	wooTimeout = 60 * time.Second
	// failed_delivery() disables a webhook whose failure count is above five already: the seventh failure in a row.
	wooFailures = 7
	// "WooCommerce/%s Hookshot (WordPress/%s)".
	wooAgent = "WooCommerce/11.2.0 Hookshot (WordPress/6.9)"
	// The shop that all events come from.
	wooSite = "shop.larkfield.example"
	// wooSalt is what the shop's wp-config.php adds to hashes.
	wooSalt = "put your unique phrase here"
)

// newWooCommerce returns the webhooks of one WooCommerce shop. It sends every event once, over HTTP/1.0, and takes 200 to 302 for success.
//
// The header X-WC-Webhook-Delivery-ID is a hash of the webhook's number and the second of the delivery, so that different events of one topic in one second
// share it: who deduplicates by it loses events. The second is that of the payload clock here, which is not compressed as that of sending is.
//
// Note: deletions are not played. Their body is {"id":N}, without a time, so that nothing in it grows with the version.
func newWooCommerce() *Provider {
	w := &woo{
		headers: headerNames("Content-Type", "User-Agent", "X-WC-Webhook-Source", "X-WC-Webhook-Topic", "X-WC-Webhook-Resource", "X-WC-Webhook-Event",
			"X-WC-Webhook-ID", "X-WC-Webhook-Delivery-ID"),
		signature: headerNames("X-WC-Webhook-Signature"),
	}
	slots := wooSlots(w)
	resolve := func(name string) slot[order] { return slots[name] }
	w.item = mustCompile("woocommerce", "line_item", resolve)
	for _, k := range wooKinds {
		w.objects = append(w.objects, mustCompile("woocommerce", k.body, resolve))
	}
	return &Provider{
		Name:        "woocommerce",
		CanonicalID: "X-WC-Webhook-Topic:/id:/date_modified_gmt",
		Timeout:     wooTimeout,
		// log_delivery and deliver(): $response_code >= 200 && $response_code < 303
		SuccessMin: 200, SuccessMax: 302,
		Disable:  Disable{Failures: wooFailures},
		HTTP10:   true,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		ID:        wooID,
		Type:      wooTopic,
		Render:    w.render,
		Sign:      w.sign,
		Tamper:    tamperer("total", "price", "amount", "postcode"),
		NewSecret: wooSecret,
		PayloadOf: whole,
	}
}

// wooKinds are the resources, by how often they change in a shop. The topics are those of
// https://github.com/woocommerce/woocommerce/blob/13f4e37/plugins/woocommerce/includes/wc-webhook-functions.php
var wooKinds = []kind{
	{"order", "order.created", "order.updated", 60},
	{"product", "product.created", "product.updated", 25},
	{"customer", "customer.created", "customer.updated", 11},
	{"coupon", "coupon.created", "coupon.updated", 4},
}

func wooTopic(e Event) string {
	return wooKinds[weighted(wooKinds, draw(e.ResourceDraw, 19))].eventType(e)
}

// wooID is topic:id:modified. The time has whole seconds, and no two versions of a resource show the same.
func wooID(e Event) string {
	b := append(append(make([]byte, 0, 64), wooTopic(e)...), ':')
	b = append(strconv.AppendUint(b, wooNumber(e), 10), ':')
	return string(shown(e).AppendFormat(b, wooTime))
}

// wooNumber is the id of the resource.
func wooNumber(e Event) uint64 { return resourceID(draw(e.ResourceKey, 10)) }

// wooTime is how times are printed: without a zone, once in that of the shop and once in GMT.
const wooTime = "2006-01-02T15:04:05"

// woo holds the shapes of the body.
type woo struct {
	headers, signature headers
	// objects are in the order of wooKinds.
	objects []*template[order]
	item    *template[order]
	spare   pool[order]
}

func (w *woo) render(r *Request, d Delivery) {
	e := standIn(d)
	o := w.spare.get()
	defer w.spare.put(o)
	o.draw(e)
	topic, kind := wooTopic(e), weighted(wooKinds, draw(e.ResourceDraw, 19))
	resource, event, _ := strings.Cut(topic, ".")
	// One webhook for each topic.
	webhook := strconv.Itoa(11 + 2*kind + int(min(max(e.Version, 1), 2)-1))
	w.headers.set(r, "application/json", wooAgent, "https://"+wooSite+"/", topic, resource, event, webhook, wooDelivery(webhook, e.At))
	start := len(r.Body)
	r.Body = w.objects[kind].append(r.Body, o)
	if d.Malformed {
		r.Body = cut(r.Body, start)
	}
}

// wooDelivery follows get_new_delivery_id: wp_hash(webhook id . strtotime('now')), an HMAC-MD5 under the shop's salt.
func wooDelivery(webhook string, at time.Time) string {
	var mac [md5.Size]byte
	second := strconv.AppendInt([]byte(webhook), at.Unix(), 10)
	return hex.EncodeToString(sum(mac[:0], md5.New, wooSalt, second))
}

// sign follows generate_signature: base64 of HMAC-SHA256 over the body, under the secret with its HTML entities decoded.
func (w *woo) sign(r *Request, with Signing) {
	var mac [32]byte
	w.signature.set(r, base64.StdEncoding.EncodeToString(sha256Sum(mac[:0], wooEntities.Replace(firstSecret(with)), r.Body)))
}

// wooEntities does what wp_specialchars_decode does with ENT_QUOTES: https://developer.wordpress.org/reference/functions/wp_specialchars_decode/ (November 2026).
var wooEntities = strings.NewReplacer(
	"&#039;", "'", "&#x27;", "'", "&quot;", `"`, "&#034;", `"`, "&#x22;", `"`, "&lt;", "<", "&#060;", "<", "&gt;", ">", "&#062;", ">",
	"&amp;", "&", "&#038;", "&", "&#x26;", "&",
)

// wooSecret is fifty characters, as wp_generate_password(50) makes them.
func wooSecret(random [32]byte) string {
	bits := sha512.Sum512(random[:])
	secret := make([]byte, 50)
	for i := range secret {
		secret[i] = base62[bits[i]%62]
	}
	return string(secret)
}
