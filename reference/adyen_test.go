package reference

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const adyenSecret = "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00"

// adyenFields are what an item of the tests is made of.
type adyenFields struct{ psp, original, account, reference, value, currency, code, success string }

var adyenCapture = adyenFields{"QFQTPCQ8HXSKGK82", "NC6HT9CRT65ZGN82", "LarkfieldECOM", "order-7", "1000", "EUR", "CAPTURE", "true"}

// sum is the signature of the fields under a key.
func (f adyenFields) sum(t testing.TB, secret string) string {
	t.Helper()
	key, err := hex.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return base64Of(hmacOf(string(key), strings.Join([]string{f.psp, f.original, f.account, f.reference, f.value, f.currency, f.code, f.success}, ":")))
}

// item renders an item with a signature.
func (f adyenFields) item(signature string) string {
	return fmt.Sprintf(`{"NotificationRequestItem":{"additionalData":{"hmacSignature":%q},"amount":{"currency":%q,"value":%s},"eventCode":%q,"eventDate":"2026-11-02T09:59:58+01:00",`+
		`"merchantAccountCode":%q,"merchantReference":%q,"originalReference":%q,"pspReference":%q,"reason":"","success":%q}}`,
		signature, f.currency, f.value, f.code, f.account, f.reference, f.original, f.psp, f.success)
}

func adyenBody(items ...string) string {
	return `{"live":"false","notificationItems":[` + strings.Join(items, ",") + `]}`
}

// TestAdyenVector: https://github.com/Adyen/adyen-go-api-library (at fed7311).
func TestAdyenVector(t *testing.T) {
	f := adyenFields{"pspReference", "originalReference", "merchantAccount", "reference", "1000", "EUR", "EVENT", "true"}
	check := func(secret, signature string) {
		t.Helper()
		d := deliveryAt(adyenBody(f.item(signature)), signingNow)
		if err := testHook(t, "adyen", "00ff", Secret(secret)).verify(d, defaultWindow); err != nil {
			t.Errorf("refused: %v", err)
		}
		if err := testHook(t, "adyen", "00ff").verify(d, defaultWindow); !errors.Is(err, errForged) {
			t.Errorf("another key: got %v, want %v", err, errForged)
		}
	}
	check(adyenSecret, "ipnxGCaUZ4l8TUW75a71/ghd2Fe5ffvX0pV4TLTntIc=")
	v := vectorNamed(t, "adyen-item")
	if v.SignedString != "pspReference:originalReference:merchantAccount:reference:1000:EUR:EVENT:true" {
		t.Fatalf("the file's string is %s", v.SignedString)
	}
	check(v.SecretHex, v.Signature)
}

func TestAdyenVerify(t *testing.T) {
	good := adyenCapture
	signed := func(f adyenFields) string { return f.item(f.sum(t, adyenSecret)) }
	authorised := good
	authorised.original, authorised.code = "", "AUTHORISATION"
	// Nothing but eight fields is covered, each of them is.
	altered := func(from, to string) string { return adyenBody(strings.Replace(signed(good), from, to, 1)) }
	colon := good
	colon.reference = "order:7"
	shifted := strings.Replace(strings.Replace(signed(colon), `"order:7"`, `"7"`, 1), `"LarkfieldECOM"`, `"LarkfieldECOM:order"`, 1)
	for _, tc := range []struct {
		name, body string
		want       error
	}{
		{"good", adyenBody(signed(good)), nil},
		{"without an original", adyenBody(strings.Replace(signed(authorised), `"originalReference":"",`, "", 1)), nil},
		{"many", adyenBody(signed(good), signed(authorised), signed(good)), nil},
		{"a colon in the merchant's reference", adyenBody(signed(colon)), nil},
		{"the colon moved to a neighbour", adyenBody(shifted), errForged},
		{"one of many is wrong", adyenBody(signed(good), good.item(authorised.sum(t, adyenSecret)), signed(authorised)), errForged},
		{"one of many is unsigned", adyenBody(signed(good), good.item("")), errUnsigned},
		{"the last of many is no object", adyenBody(signed(good), "7"), errUnsigned},
		{"signed with the text of the key", adyenBody(good.item(base64Of(hmacOf(adyenSecret, "QFQTPCQ8HXSKGK82:NC6HT9CRT65ZGN82:LarkfieldECOM:order-7:1000:EUR:CAPTURE:true")))), errForged},
		{"pspReference", altered("QFQT", "QFQS"), errForged},
		{"originalReference", altered("NC6H", "NC6J"), errForged},
		{"account", altered("ECOM", "ECOO"), errForged},
		{"reference", altered("order-7", "order-8"), errForged},
		{"value", altered("1000", "1001"), errForged},
		{"currency", altered("EUR", "USD"), errForged},
		{"code", altered("CAPTURE", "REFUND"), errForged},
		{"success", altered(`"true"`, `"false"`), errForged},
		{"success is no text", altered(`"true"`, `true`), errForged},
		{"the value twice", altered(`"value":1000`, `"value":1000,"value":9`), errForged},
		{"the date is not covered", altered("59:58", "59:59"), nil},
		{"no items", adyenBody(), errUnsigned},
		{"items are no array", `{"notificationItems":{}}`, errUnsigned},
		{"another object", `{}`, errUnsigned},
		{"array", `[]`, errMalformed},
		{"cut", adyenBody(signed(good))[:300], errMalformed},
		{"nothing", ``, errMalformed},
	} {
		if err := testHook(t, "adyen", adyenSecret).verify(deliveryAt(tc.body, signingNow), defaultWindow); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.want)
		}
	}
}

func TestAdyenKeys(t *testing.T) {
	for _, secret := range []Secret{"not hexadecimal", "DFB", "0xFF"} {
		if _, err := newAdyenHook([]Secret{adyenSecret, secret}); err == nil || !strings.Contains(err.Error(), "secret 2") || strings.Contains(err.Error(), string(secret)) {
			t.Errorf("%s: got %v, want an error that names secret 2 and does not show it", string(secret), err)
		}
	}
}

func TestAdyenSplit(t *testing.T) {
	authorised := adyenCapture
	authorised.psp, authorised.original, authorised.code = adyenCapture.original, "", "AUTHORISATION"
	nameless, untyped := adyenCapture, adyenCapture
	nameless.psp, untyped.code = "", ""
	items := []string{adyenCapture.item("s"), authorised.item("s"), nameless.item("s"), untyped.item("s"), adyenCapture.item("t")}
	const version = 1793609998000
	want := []queue.Job{
		{EventID: "CAPTURE:QFQTPCQ8HXSKGK82", Type: "CAPTURE", Resource: "payment/NC6HT9CRT65ZGN82", Version: version, Payload: []byte(items[0])},
		{EventID: "AUTHORISATION:NC6HT9CRT65ZGN82", Type: "AUTHORISATION", Resource: "payment/NC6HT9CRT65ZGN82", Version: version, Payload: []byte(items[1])},
		{EventID: sha256ID(items[2]), Type: "CAPTURE", Resource: "payment/NC6HT9CRT65ZGN82", Version: version, Payload: []byte(items[2]), DeadOnArrival: "malformed item: no pspReference"},
		{EventID: sha256ID(items[3]), Resource: "payment/NC6HT9CRT65ZGN82", Version: version, Payload: []byte(items[3]), DeadOnArrival: "malformed item: no eventCode"},
	}
	jobs, err := testHook(t, "adyen", adyenSecret).split(deliveryAt(adyenBody(items...), signingNow))
	if diff := cmp.Diff(want, jobs); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestAdyenBatchIsRefusedWhole: a single wrong item, and not one event is queued.
func TestAdyenBatchIsRefusedWhole(t *testing.T) {
	other := adyenCapture
	other.psp = "VVQTPCQ8HXSKGK82"
	right, wrong := adyenCapture.item(adyenCapture.sum(t, adyenSecret)), other.item(adyenCapture.sum(t, adyenSecret))
	for body, want := range map[string]int{adyenBody(right): 200, adyenBody(right, wrong): 401, adyenBody(wrong, right): 401, adyenBody(right)[:200]: 400} {
		s := sample{provider: "adyen", body: body, header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
		status, jobs := receiveOne(t, "adyen", []Secret{adyenSecret}, s.request())
		if status != want || (len(jobs) == 1) != (want == 200) {
			t.Errorf("%s: got %d with %d jobs, want %d", body, status, len(jobs), want)
		}
	}
}

// FuzzAdyen: whatever verify accepts is an item whose eight fields have the signature that they carry, as encoding/json reads them.
func FuzzAdyen(f *testing.F) {
	good := adyenCapture.item(adyenCapture.sum(f, adyenSecret))
	f.Add([]byte(adyenBody(good)))
	f.Add([]byte(adyenBody(good, good)))
	f.Add([]byte(adyenBody(strings.Replace(good, `"amount"`, `"amount":null,"amount"`, 1))))
	for _, seed := range jsonSeeds() {
		f.Add([]byte(seed))
		f.Add([]byte(adyenBody(seed)))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h, d := testHook(t, "adyen", adyenSecret), deliveryAt(string(body), signingNow)
		accepted := h.verify(d, defaultWindow) == nil
		jobs, err := h.split(d)
		if accepted && err != nil {
			t.Errorf("verified and not split: %v", err)
		}
		if err == nil {
			if !json.Valid(body) {
				t.Errorf("split %q", body)
			}
			checkJobs(t, body, jobs)
		}
		if !accepted {
			return
		}
		for _, job := range jobs {
			checkAdyenItem(t, job.Payload)
		}
	})
}

// checkAdyenItem computes the signature of an item again, from what encoding/json finds in it. Only the exact names count: the maps keep others apart.
func checkAdyenItem(t *testing.T, payload []byte) {
	t.Helper()
	var outer map[string]map[string]any
	if err := json.Unmarshal(payload, &outer); err != nil {
		return // A member beside the item that is no object.
	}
	item := outer["NotificationRequestItem"]
	text := func(object map[string]any, name string) string {
		s, _ := object[name].(string)
		return s
	}
	amount, _ := item["amount"].(map[string]any)
	data, _ := item["additionalData"].(map[string]any)
	value, _ := amount["value"].(float64)
	if value > 1<<53 || value != 0 && !strings.Contains(string(payload), fmt.Sprintf("%.0f", value)) {
		return // Written as 1e3, or too large for encoding/json's numbers.
	}
	f := adyenFields{
		psp: text(item, "pspReference"), original: text(item, "originalReference"), account: text(item, "merchantAccountCode"), reference: text(item, "merchantReference"),
		value: fmt.Sprintf("%.0f", value), currency: text(amount, "currency"), code: text(item, "eventCode"), success: text(item, "success"),
	}
	if amount["value"] == nil {
		f.value = ""
	}
	if got, want := text(data, "hmacSignature"), f.sum(t, adyenSecret); got != want {
		t.Errorf("accepted %s: signature %s, want %s", payload, got, want)
	}
}
