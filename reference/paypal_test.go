package reference

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"hash/crc32"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"

	"floodproof/reference/queue"
)

const paypalWebhook = "9XL90610J3647323C"

// paypalPair is a key and its certificate.
type paypalPair struct {
	key         *rsa.PrivateKey
	certificate []byte
}

// paypalPairs are the right one and another; making them takes a while.
var paypalPairs = sync.OnceValue(func() [2]paypalPair {
	var pairs [2]paypalPair
	for i := range pairs {
		key, err := rsa.GenerateKey(rand.Reader, minRSA)
		if err != nil {
			panic(err)
		}
		pairs[i] = paypalPair{key, selfSigned(key)}
	}
	return pairs
})

func selfSigned(key crypto.Signer) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1, 0)} // Long over, and pinned.
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return der
}

// ellipticCertificate is a certificate with a key that PayPal's rule has no use for.
func ellipticCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return base64Of(selfSigned(key))
}

func paypalSigner() signer {
	pairs := paypalPairs()
	return signer{
		secret: Secret(paypalWebhook + " " + base64Of(pairs[0].certificate)), other: Secret(paypalWebhook + " " + base64Of(pairs[1].certificate)),
		signature: "PAYPAL-TRANSMISSION-SIG",
		sign: func(h http.Header, body string, at time.Time) {
			const id = "d938e770-8046-11e6-8103-6b62a8a99ac4"
			stamp := at.UTC().Format(time.RFC3339)
			h.Set("PAYPAL-TRANSMISSION-ID", id)
			h.Set("PAYPAL-TRANSMISSION-TIME", stamp)
			h.Set("PAYPAL-AUTH-ALGO", "SHA256withRSA")
			h.Set("PAYPAL-TRANSMISSION-SIG", paypalSignature(pairs[0].key, fmt.Sprintf("%s|%s|%s|%d", id, stamp, paypalWebhook, crc32.ChecksumIEEE([]byte(body)))))
		},
		body: `{"id":"WH-9UG43882HX7271132-6E0871324L7949614","event_version":"1.0","create_time":"2026-11-02T08:59:58.250Z","resource_type":"capture",` +
			`"event_type":"PAYMENT.CAPTURE.COMPLETED","resource":{"amount":{"value":"21.00"},"links":[{"id":"no"}],"id":"80F85758S3080410K"}}`,
		job: queue.Job{
			EventID: "WH-9UG43882HX7271132-6E0871324L7949614", DeliveryID: "d938e770-8046-11e6-8103-6b62a8a99ac4", Type: "PAYMENT.CAPTURE.COMPLETED",
			Resource: "capture/80F85758S3080410K", Version: 1793609998250,
		},
	}
}

func paypalSignature(key *rsa.PrivateKey, text string) string {
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err)
	}
	return base64Of(signature)
}

// TestPayPalTrust: key and webhook id must both be those that were configured, whatever the request offers.
func TestPayPalTrust(t *testing.T) {
	pairs := paypalPairs()
	s := paypalSigner()
	good := s.sample("paypal", s.body, signingNow)
	id, stamp, crc := good.header.Get("PAYPAL-TRANSMISSION-ID"), good.header.Get("PAYPAL-TRANSMISSION-TIME"), crc32.ChecksumIEEE([]byte(s.body))
	text := func(webhook string) string { return fmt.Sprintf("%s|%s|%s|%d", id, stamp, webhook, crc) }
	asPEM := Secret(paypalWebhook + "\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pairs[0].certificate})))
	for _, tc := range []struct {
		name   string
		secret Secret
		s      sample
		want   int
	}{
		{"genuine", s.secret, good, 200},
		{"certificate as PEM", asPEM, good, 200},
		{"a certificate of the sender's own", s.secret, good.with("PAYPAL-TRANSMISSION-SIG", paypalSignature(pairs[1].key, text(paypalWebhook))).with("PAYPAL-CERT-URL", "http://127.0.0.1:1/cert"), 401},
		{"meant for another webhook", s.secret, good.with("PAYPAL-TRANSMISSION-SIG", paypalSignature(pairs[0].key, text("1JE4291016473214C"))), 401},
		{"the checksum in hexadecimal", s.secret, good.with("PAYPAL-TRANSMISSION-SIG", paypalSignature(pairs[0].key, fmt.Sprintf("%s|%s|%s|%x", id, stamp, paypalWebhook, crc))), 401},
		{"a weaker algorithm", s.secret, good.with("PAYPAL-AUTH-ALGO", "SHA1withRSA"), 401},
		{"no algorithm", s.secret, good.with("PAYPAL-AUTH-ALGO", "none"), 401},
		{"a signature of another length", s.secret, good.with("PAYPAL-TRANSMISSION-SIG", base64Of([]byte("short"))), 401},
		{"fields moved", s.secret, good.with("PAYPAL-TRANSMISSION-ID", id+"|"+stamp).with("PAYPAL-TRANSMISSION-TIME", paypalWebhook), 401},
	} {
		rc := newTestReceiver(t, &fakeQueue{}, func(cfg *ReceiverConfig) { cfg.Providers["paypal"] = ProviderConfig{Secrets: []Secret{tc.secret}} })
		if w := send(rc, tc.s.request()); w.Code != tc.want {
			t.Errorf("%s: got %d %s, want %d", tc.name, w.Code, w.Body, tc.want)
		}
	}
}

func TestPayPalSplit(t *testing.T) {
	for body, want := range map[string]string{
		`{"id":"WH-1","event_type":"CUSTOMER.DISPUTE.CREATED","resource_type":"dispute","resource":{"dispute_id":"PP-1"}}`: "dispute/PP-1",
		`{"id":"WH-1","event_type":"X","resource":{"id":"1"}}`:                                                             "",
		`{"id":"WH-1","event_type":"X","resource_type":"sale","resource":"x"}`:                                             "",
	} {
		jobs, err := testHook(t, "paypal", paypalSigner().secret).split(&delivery{body: []byte(body)})
		if err != nil || len(jobs) != 1 || jobs[0].Resource != want {
			t.Errorf("%s: got %+v, %v; want the resource %q", body, jobs, err, want)
		}
	}
	for _, body := range []string{`{}`, `{"id":"WH-1"}`, `{"event_type":"X"}`, `{"id":1,"event_type":"X"}`} {
		if jobs, err := testHook(t, "paypal", paypalSigner().secret).split(&delivery{body: []byte(body)}); err == nil {
			t.Errorf("%s: made %+v", body, jobs)
		}
	}
}

func FuzzPayPal(f *testing.F) {
	pairs := paypalPairs()
	fuzzSigned(f, "paypal", func(h http.Header, body string) bool {
		text := fmt.Sprintf("%s|%s|%s|%d", h.Get("PAYPAL-TRANSMISSION-ID"), h.Get("PAYPAL-TRANSMISSION-TIME"), paypalWebhook, crc32.ChecksumIEEE([]byte(body)))
		got := h.Get("PAYPAL-TRANSMISSION-SIG")
		return h.Get("PAYPAL-AUTH-ALGO") == "SHA256withRSA" && (got == paypalSignature(pairs[0].key, text) || got == paypalSignature(pairs[1].key, text))
	})
}
