package reference

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue"
)

const (
	sendgridPublic = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="
	sendgridItem1  = `{"email":"hello@world.com","event":"dropped","reason":"Bounced Address","sg_event_id":"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA",` +
		`"sg_message_id":"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0","smtp-id":"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>",` +
		`"timestamp":1600112492}`
	sendgridStamp     = "1600112502"
	sendgridSignature = "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="
)

func sendgridDelivery(body, stamp, signature string) *delivery {
	d := deliveryAt(body, signingNow)
	d.header.Set("X-Twilio-Email-Event-Webhook-Timestamp", stamp)
	d.header.Set("X-Twilio-Email-Event-Webhook-Signature", signature)
	return d
}

// TestSendGridVector: https://github.com/sendgrid/sendgrid-go (at 0f2bb79) helpers/eventwebhook/eventwebhook_test.go.
func TestSendGridVector(t *testing.T) {
	check := func(public, body, stamp, signature string) {
		t.Helper()
		h := testHook(t, "sendgrid", Secret(sendgridTestKey(t, 9).public), Secret(public))
		if err := h.verify(sendgridDelivery(body, stamp, signature), defaultWindow); err != nil {
			t.Errorf("refused: %v", err)
		}
		other := testHook(t, "sendgrid", Secret(sendgridTestKey(t, 9).public))
		for name, d := range map[string]*delivery{
			"without CR LF":    sendgridDelivery(strings.TrimSpace(body), stamp, signature),
			"with LF alone":    sendgridDelivery(strings.Replace(body, "\r", "", 1), stamp, signature),
			"another time":     sendgridDelivery(body, "1600112503", signature),
			"another body":     sendgridDelivery(strings.Replace(body, "dropped", "droppee", 1), stamp, signature),
			"another r":        sendgridDelivery(body, stamp, strings.Replace(signature, "GHQV", "GHQW", 1)),
			"not in ASN.1":     sendgridDelivery(body, stamp, base64Of(make([]byte, 64))),
			"an empty integer": sendgridDelivery(body, stamp, base64Of([]byte{0x30, 4, 2, 0, 2, 0})),
		} {
			if err := h.verify(d, defaultWindow); !errors.Is(err, errForged) {
				t.Errorf("%s: got %v, want %v", name, err, errForged)
			}
		}
		if err := other.verify(sendgridDelivery(body, stamp, signature), defaultWindow); !errors.Is(err, errForged) {
			t.Errorf("another key: got %v, want %v", err, errForged)
		}
	}
	check(sendgridPublic, "["+sendgridItem1+"]\r\n", sendgridStamp, sendgridSignature)
	v := vectorNamed(t, "sendgrid")
	check(v.PublicKey, v.Body, v.Timestamp, v.Signature)
}

// testECDSA is a key pair of the tests.
type testECDSA struct {
	private *ecdsa.PrivateKey
	public  string
}

func sendgridTestKey(t testing.TB, seed byte) testECDSA {
	t.Helper()
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), []byte(strings.Repeat("\x01", 31)+string(rune(seed))))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return testECDSA{key, base64Of(der)}
}

// sign signs time stamp and body.
func (k testECDSA) sign(t testing.TB, stamp, body string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(stamp + body))
	signature, err := k.private.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return base64Of(signature)
}

func TestSendGridUnsigned(t *testing.T) {
	h := testHook(t, "sendgrid", sendgridPublic)
	const body = "[]\r\n"
	for name, d := range map[string]*delivery{
		"nothing":         deliveryAt(body, signingNow),
		"no time":         sendgridDelivery(body, "", sendgridSignature),
		"time is no time": sendgridDelivery(body, " 1600112502", sendgridSignature),
		"no signature":    sendgridDelivery(body, sendgridStamp, ""),
		"no base64":       sendgridDelivery(body, sendgridStamp, "!!!!"),
		"too long":        sendgridDelivery(body, sendgridStamp, strings.Repeat("AAAA", 100)),
	} {
		if err := h.verify(d, defaultWindow); !errors.Is(err, errUnsigned) {
			t.Errorf("%s: got %v, want %v", name, err, errUnsigned)
		}
	}
	d := sendgridDelivery("["+sendgridItem1+"]\r\n", sendgridStamp, sendgridSignature)
	d.header.Add("X-Twilio-Email-Event-Webhook-Signature", sendgridSignature)
	if err := h.verify(d, defaultWindow); !errors.Is(err, errUnsigned) {
		t.Errorf("two signatures: got %v, want %v", err, errUnsigned)
	}
}

func TestSendGridKeys(t *testing.T) {
	private, err := x509.MarshalPKCS8PrivateKey(sendgridTestKey(t, 5).private)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.ParseRawPrivateKey(elliptic.P384(), []byte(strings.Repeat("\x01", 48)))
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKIXPublicKey(&p384.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{
		"no base64": "not a key", "no key": "AAAA", "the private half": base64Of(private), "another curve": base64Of(other), "cut": sendgridPublic[:80],
	} {
		_, err := newSendGridHook([]Secret{sendgridPublic, Secret(secret)})
		if err == nil || !strings.Contains(err.Error(), "secret 2") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want an error that names secret 2 and does not show it", name, err)
		}
	}
}

func TestSendGridSplit(t *testing.T) {
	const (
		noType = `{"email":{"address":"x"},"timestamp":1600112492,"sg_event_id":"broken"}`
		noID   = `{"event":"open","timestamp":1600112492}`
	)
	want := []queue.Job{
		{
			EventID: "ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA", Type: "dropped",
			Resource: "message/LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0", Version: 1600112492000, Payload: []byte(sendgridItem1),
		},
		{EventID: "broken", Version: 1600112492000, Payload: []byte(noType), DeadOnArrival: "malformed item: no event"},
		{EventID: sha256ID(noID), Type: "open", Version: 1600112492000, Payload: []byte(noID), DeadOnArrival: "malformed item: no sg_event_id"},
		{EventID: sha256ID("7"), Payload: []byte("7"), DeadOnArrival: "malformed item: not an object"},
	}
	h := testHook(t, "sendgrid", sendgridPublic)
	jobs, err := h.split(deliveryAt("["+strings.Join([]string{sendgridItem1, noType, noID, "7", sendgridItem1}, ",")+"]\r\n", signingNow))
	if diff := cmp.Diff(want, jobs); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for body, want := range map[string]error{"{}": errMalformed, "[{]": errMalformed, "": errMalformed, "[{},": errMalformed, "[" + strings.Repeat("1,", maxEvents) + "1]": errBatch} {
		if jobs, err := h.split(deliveryAt(body, signingNow)); !errors.Is(err, want) || jobs != nil {
			t.Errorf("%.20q: got %v, want %v", body, err, want)
		}
	}
}

// TestSendGridRequest goes through the whole receiver.
func TestSendGridRequest(t *testing.T) {
	key := sendgridTestKey(t, 3)
	stamp := strconv.FormatInt(signingNow.Unix(), 10)
	for body, want := range map[string]int{"[" + sendgridItem1 + "]\r\n": 200, "[]\r\n": 200, "[{]\r\n": 400} {
		s := sample{provider: "sendgrid", body: body, header: http.Header{"Content-Type": {"application/json"}}}
		s = s.with("X-Twilio-Email-Event-Webhook-Timestamp", stamp).with("X-Twilio-Email-Event-Webhook-Signature", key.sign(t, stamp, body))
		if status, _ := receiveOne(t, "sendgrid", []Secret{Secret(key.public)}, s.request()); status != want {
			t.Errorf("%q: got %d, want %d", body, status, want)
		}
	}
}

// FuzzSendGrid: nobody has the private key of the published vector, so that nothing but the vector itself may be accepted; whatever split accepts is fit to queue.
func FuzzSendGrid(f *testing.F) {
	f.Add([]byte("["+sendgridItem1+"]\r\n"), sendgridStamp, sendgridSignature)
	for _, seed := range jsonSeeds() {
		f.Add([]byte(seed), "1", base64.StdEncoding.EncodeToString([]byte(seed)))
		f.Add([]byte("["+seed+"]"), "1", "")
	}
	f.Fuzz(func(t *testing.T, body []byte, stamp, signature string) {
		h, d := testHook(t, "sendgrid", sendgridPublic), sendgridDelivery(string(body), stamp, signature)
		if h.verify(d, defaultWindow) == nil && stamp+string(body) != sendgridStamp+"["+sendgridItem1+"]\r\n" {
			t.Errorf("accepted %q at %q with %q", body, stamp, signature)
		}
		if jobs, err := h.split(d); err == nil {
			if !json.Valid(body) {
				t.Errorf("split %q", body)
			}
			checkJobs(t, body, jobs)
		}
	})
}
