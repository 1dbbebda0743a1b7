package provider_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"floodproof/loadgen/provider"
)

// adyenItem is an item as a receiver decodes it.
type adyenItem struct {
	AdditionalData struct{ HmacSignature string }
	Amount         struct {
		Currency string
		Value    json.Number
	}
	EventCode, EventDate, MerchantAccountCode, MerchantReference, OriginalReference, PSPReference, Success string
}

// signed are the fields that Adyen signs.
func (i adyenItem) signed() string {
	return strings.Join([]string{
		i.PSPReference, i.OriginalReference, i.MerchantAccountCode, i.MerchantReference, i.Amount.Value.String(), i.Amount.Currency, i.EventCode, i.Success,
	}, ":")
}

func adyenItems(t testing.TB, body []byte) []adyenItem {
	t.Helper()
	var webhook struct {
		Live              string
		NotificationItems []struct{ NotificationRequestItem adyenItem }
	}
	if err := json.Unmarshal(body, &webhook); err != nil || webhook.Live != "false" {
		t.Fatalf("%v, live %q in %s", err, webhook.Live, body)
	}
	var items []adyenItem
	for _, item := range webhook.NotificationItems {
		items = append(items, item.NotificationRequestItem)
	}
	return items
}

// TestAdyenVector: the item of https://github.com/Adyen/adyen-go-api-library (at fed7311) and its signature.
func TestAdyenVector(t *testing.T) {
	const body = `{"live":"false","notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":""},"originalReference":"originalReference",` +
		`"amount":{"currency":"EUR","value":1000},"eventCode":"EVENT","merchantAccountCode":"merchantAccount","merchantReference":"reference",` +
		`"pspReference":"pspReference","success":"true"}}]}`
	check := func(secret, signedString, want string) {
		r := provider.Request{Body: []byte(body)}
		find(t, "adyen").Sign(&r, provider.Signing{Secrets: []string{secret}, Now: day})
		item := adyenItems(t, r.Body)[0]
		if item.AdditionalData.HmacSignature != want || item.signed() != signedString {
			t.Errorf("got %s for %s, want %s for %s", item.AdditionalData.HmacSignature, item.signed(), want, signedString)
		}
	}
	check("DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00", "pspReference:originalReference:merchantAccount:reference:1000:EUR:EVENT:true",
		"ipnxGCaUZ4l8TUW75a71/ghd2Fe5ffvX0pV4TLTntIc=")
	v := vectorNamed(t, "adyen-item")
	check(v.SecretHex, v.SignedString, v.Signature)
}

// TestAdyenSignsEachItem also of many, of every type, under a key in hexadecimal, and the same way in every attempt.
func TestAdyenSignsEachItem(t *testing.T) {
	p := find(t, "adyen")
	secret := p.NewSecret([32]byte{7, 8, 9})
	key, err := hex.DecodeString(secret)
	if err != nil || len(key) != 32 || strings.ToUpper(secret) != secret {
		t.Fatalf("secret %s: %v", secret, err)
	}
	codes := map[string]bool{}
	for n := range uint64(200) {
		d := provider.Delivery{Key: n, Attempt: 1}
		for i := range n%5 + 1 {
			d.Events = append(d.Events, eventOf(n*8+i, uint32(i+n%3+1)))
		}
		var first, retry provider.Request
		p.Render(&first, d)
		for _, item := range adyenItems(t, first.Body) {
			if item.AdditionalData.HmacSignature != "" {
				t.Fatal("Render has signed")
			}
		}
		p.Sign(&first, provider.Signing{Secrets: []string{secret, "00"}, Now: day})
		d.Attempt = 4
		p.Render(&retry, d)
		p.Sign(&retry, provider.Signing{Secrets: []string{secret}, Now: day.Add(time.Hour)})
		p.Sign(&retry, provider.Signing{Secrets: []string{secret}, Now: day.Add(2 * time.Hour)})
		if !bytes.Equal(first.Body, retry.Body) {
			t.Fatalf("a retry differs:\n%s\n%s", first.Body, retry.Body)
		}
		items := adyenItems(t, first.Body)
		if len(items) != len(d.Events) {
			t.Fatalf("%d items for %d events", len(items), len(d.Events))
		}
		for i, item := range items {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(item.signed()))
			if got, want := item.AdditionalData.HmacSignature, base64.StdEncoding.EncodeToString(mac.Sum(nil)); got != want {
				t.Fatalf("item %d: signature %s of %s, want %s", i, got, item.signed(), want)
			}
			if strings.Count(item.signed(), ":") != 7 {
				t.Fatalf("a field holds a colon: %s", item.signed())
			}
			if (item.OriginalReference == "") != (item.EventCode == "AUTHORISATION") || item.Success != "true" && item.Success != "false" {
				t.Fatalf("%+v", item)
			}
			codes[item.EventCode+"/"+item.Success] = true
		}
	}
	for _, want := range []string{"AUTHORISATION/true", "AUTHORISATION/false", "CAPTURE/true", "CANCELLATION/true", "REFUND/true", "CHARGEBACK/true"} {
		if !codes[want] {
			t.Errorf("no %s among %v", want, codes)
		}
	}
}

// TestAdyenPayment: what follows an authorisation names it, and has a reference of its own.
func TestAdyenPayment(t *testing.T) {
	p := find(t, "adyen")
	for n := range uint64(60) {
		var payment string
		seen := map[string]bool{}
		for v := uint32(1); v <= 4; v++ {
			e := eventOf(n, v)
			e.Key = scatter(n<<8 + uint64(v))
			item := adyenItems(t, signed(p, provider.Delivery{Attempt: 1, Events: []provider.Event{e}}).Body)[0]
			if v == 1 {
				payment = item.PSPReference
			} else if item.OriginalReference != payment {
				t.Fatalf("version %d of payment %s is about %s", v, payment, item.OriginalReference)
			}
			if seen[item.PSPReference] || len(item.PSPReference) != 16 {
				t.Fatalf("pspReference %s", item.PSPReference)
			}
			seen[item.PSPReference] = true
		}
	}
}

// TestAdyenTamper changes one of the eight fields, whatever stands in the item before.
func TestAdyenTamper(t *testing.T) {
	p := find(t, "adyen")
	for n := range uint64(60) {
		r := signed(p, deliveryOf(p, n, 1))
		before := adyenItems(t, r.Body)[0]
		p.Tamper(r.Body)
		if after := adyenItems(t, r.Body)[0]; before.signed() == after.signed() {
			t.Fatalf("nothing changed in %s", after.signed())
		}
	}
}

func TestAdyenDelays(t *testing.T) {
	d := find(t, "adyen").Delays
	if got, want := d[:3], [3]time.Duration{9 * time.Second, 18 * time.Second, 27 * time.Second}; [3]time.Duration(got) != want {
		t.Errorf("first delays %v, want %v", got, want)
	}
	for i := 4; i < len(d)-1; i++ {
		if d[i] < d[i-1] || d[i] > 8*time.Hour {
			t.Errorf("delay %d is %v after %v", i, d[i], d[i-1])
		}
	}
}
