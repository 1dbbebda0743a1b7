package provider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	_ "embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"hash/crc32"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// The two private keys that simulated PayPal deliveries are signed with. They are public, and are enough: one to sign with and one to forge with.
//
// Note: crypto/rsa makes no keys from a given seed, on purpose, and with a key that is made anew for each run no delivery could be rendered again. What
// keeps strangers out of a test is the webhook id, which is signed and drawn for each run.
//
// Note: a signature costs about a millisecond of one CPU, hundreds of times an HMAC, and nothing of it can be kept for the next. Shorter keys would be cheaper, and are no
// longer accepted (https://pkg.go.dev/crypto/rsa, "Minimum key size").
var (
	//go:embed testkeys/paypal-1.pem
	paypalTestKey1 string
	//go:embed testkeys/paypal-2.pem
	paypalTestKey2 string
)

// The names of the two in a secret.
const (
	paypalKeyName1 = "floodproof-test-key-1"
	paypalKeyName2 = "floodproof-test-key-2"
)

// paypalKey is a secret, ready to sign. The secret is a webhook id, white space, and either the name of a test key or a private RSA key as PEM or as base64 of its
// DER (PKCS #8 or PKCS #1). Any other text is a webhook id alone and signs with one of the test keys, so that every secret signs.
type paypalKey struct {
	webhook     string
	private     *rsa.PrivateKey
	certificate []byte
	url         string
}

// newPayPalSecret draws a webhook id, in PayPal's form, and one of the test keys.
func newPayPalSecret(random [32]byte) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	secret := make([]byte, 0, 40)
	for _, b := range random[:17] {
		secret = append(secret, digits[int(b)%len(digits)])
	}
	if random[17]&1 == 0 {
		return string(secret) + " " + paypalKeyName1
	}
	return string(secret) + " " + paypalKeyName2
}

func parsePayPalKey(secret string) *paypalKey {
	webhook, key := secret, ""
	if at := strings.IndexAny(secret, " \t\r\n"); at >= 0 {
		webhook, key = secret[:at], strings.TrimSpace(secret[at:])
	}
	k := &paypalKey{webhook: webhook, private: readPayPalKey(key)}
	if k.private == nil {
		if sha256.Sum256([]byte(secret))[0]&1 == 0 {
			k.private = readPayPalKey(paypalKeyName1)
		} else {
			k.private = readPayPalKey(paypalKeyName2)
		}
	}
	k.certify()
	return k
}

// readPayPalKey returns nil for what is no key.
func readPayPalKey(text string) *rsa.PrivateKey {
	switch text {
	case paypalKeyName1:
		text = paypalTestKey1
	case paypalKeyName2:
		text = paypalTestKey2
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if block, _ := pem.Decode([]byte(text)); block != nil {
		der, err = block.Bytes, nil
	}
	if err != nil {
		return nil
	}
	if key, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		private, _ := key.(*rsa.PrivateKey)
		return private
	}
	private, err := x509.ParsePKCS1PrivateKey(der)
	if err != nil {
		return nil
	}
	return private
}

// certify makes the certificate that a receiver is given: signed by its own key, and for one key always the same bytes.
func (k *paypalKey) certify() {
	public := sha256.Sum256(x509.MarshalPKCS1PublicKey(&k.private.PublicKey))
	subject := pkix.Name{CommonName: "messageverificationcerts.paypal.example", Organization: []string{"floodproof test, not PayPal"}}
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(public[:8]), Subject: subject, Issuer: subject,
		NotBefore: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2126, time.January, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
	// It fails for no RSA key that can be parsed; a key too short for the signature leaves the certificate empty, and nobody can verify.
	k.certificate, _ = x509.CreateCertificate(rand.Reader, template, template, &k.private.PublicKey, k.private)
	k.url = paypalCerts + hex.EncodeToString(public[:4])
}

// sign signs a transmission. The signature is a function of its input: PKCS #1 v1.5 draws nothing.
func (k *paypalKey) sign(transmission, stamp string, body []byte) []byte {
	text := make([]byte, 0, 128)
	text = append(append(text, transmission...), '|')
	text = append(append(text, stamp...), '|')
	text = append(append(text, k.webhook...), '|')
	digest := sha256.Sum256(strconv.AppendUint(text, uint64(crc32.ChecksumIEEE(body)), 10))
	signature, err := rsa.SignPKCS1v15(nil, k.private, crypto.SHA256, digest[:])
	if err != nil {
		return []byte("no signature") // The key is too short for one; the delivery is refused, as it should be.
	}
	return signature
}
