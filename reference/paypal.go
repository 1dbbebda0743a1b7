package reference

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"

	"floodproof/reference/queue"
)

// paypalHook knows PayPal's webhooks.
//
// Signature: PAYPAL-TRANSMISSION-SIG: base64 of RSA-SHA256 (PKCS #1 v1.5) over "transmission id|transmission time|webhook id|CRC-32 of the body, in decimal". PayPal
// prescribes no age, and does not say whether a retry has a time of its own, so none is enforced.
// Source: https://developer.paypal.com/api/rest/webhooks/rest/ (read November 2026).
//
// The secret is the webhook id, white space, and PayPal's certificate, as PEM or as base64 of its DER: neither is secret, and both must be right. Note: the request
// names a URL to fetch the certificate from (PAYPAL-CERT-URL), and it is never looked at. Whoever fetched it before knowing who sent it would send requests
// wherever a stranger wants, and then trust what comes back; so the certificate is given by hand, and a new one is added as a second secret before PayPal changes it. Its
// dates are not looked at either: what was given by hand is trusted until it is taken away.
//
// Note: the signature covers the body by its CRC-32 alone, and anybody can make another body with the same one. Whoever got hold of one genuine delivery can send his own body
// under its signature; only TLS stands against that. Before money moves, a handler should ask PayPal for the resource.
//
// Event id: /id, the same for every retry.
type paypalHook struct{ trust []paypalTrust }

// paypalTrust is one active pair.
type paypalTrust struct {
	webhook string
	key     *rsa.PublicKey
}

// minRSA is the least size of a key in bits.
const minRSA = 2048

// errAlgorithm: taking what the header asks for would let an attacker choose.
var errAlgorithm = &refusal{http.StatusUnauthorized, "signature algorithm is not SHA256withRSA"}

func newPayPalHook(secrets []Secret) (hook, error) {
	var h paypalHook
	var faults []error
	for i, secret := range secrets {
		trust, err := parsePayPalSecret(string(secret))
		if err != nil {
			faults = append(faults, fmt.Errorf("secret %d: %w", i+1, err))
		}
		h.trust = append(h.trust, trust)
	}
	return h, errors.Join(faults...)
}

// parsePayPalSecret reads a webhook id and a certificate.
func parsePayPalSecret(text string) (trust paypalTrust, err error) {
	at := strings.IndexAny(text, " \t\r\n")
	if at <= 0 {
		return trust, errors.New("want the webhook id, a space, and PayPal's certificate as PEM or as base64 of its DER")
	}
	trust.webhook = text[:at]
	rest := strings.TrimSpace(text[at:])
	der, err := base64.StdEncoding.DecodeString(rest)
	if block, _ := pem.Decode([]byte(rest)); block != nil {
		der, err = block.Bytes, nil
	}
	if err != nil {
		return trust, errors.New("the certificate is neither PEM nor base64")
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return trust, fmt.Errorf("parse certificate: %w", err)
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < minRSA {
		return trust, fmt.Errorf("the certificate must hold an RSA key of at least %d bits", minRSA)
	}
	trust.key = key
	return trust, nil
}

func (h paypalHook) verify(d *delivery, _ window) error {
	id, at := onlyHeader(d.header, "Paypal-Transmission-Id"), onlyHeader(d.header, "Paypal-Transmission-Time")
	signature, err := base64.StdEncoding.Strict().DecodeString(onlyHeader(d.header, "Paypal-Transmission-Sig"))
	// A bar in one of them would let the same signed bytes be cut in more than one way.
	if err != nil || len(signature) == 0 || !usable(id) || !usable(at) || strings.Contains(id+at, "|") {
		return errUnsigned
	}
	if onlyHeader(d.header, "Paypal-Auth-Algo") != "SHA256withRSA" {
		return errAlgorithm
	}
	sum := strconv.FormatUint(uint64(crc32.ChecksumIEEE(d.body)), 10)
	for _, trust := range h.trust {
		digest := sha256.Sum256([]byte(id + "|" + at + "|" + trust.webhook + "|" + sum))
		if rsa.VerifyPKCS1v15(trust.key, crypto.SHA256, digest[:], signature) == nil {
			return nil
		}
	}
	return errForged
}

func (paypalHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{DeliveryID: usableOr(d.header.Get("Paypal-Transmission-Id"), ""), Payload: d.body}
	var kind, id string
	for key := range c.members {
		switch string(key) {
		case "id":
			job.EventID = c.text()
		case "event_type":
			job.Type = c.text()
		case "create_time":
			job.Version = c.millis()
		case "resource_type":
			kind = c.text()
		case "resource":
			id = paypalResource(&c)
		}
	}
	switch {
	case !c.done():
		return nil, errMalformed
	case !usable(job.EventID):
		return nil, errNoID
	case !usable(job.Type):
		return nil, errNoType
	}
	job.Resource = resource(kind, id)
	return []queue.Job{job}, nil
}

// paypalResource reads the id of the resource at the cursor. A dispute has a name of its own for it.
func paypalResource(c *jsonCursor) (id string) {
	for key := range c.members {
		if name := string(key); name == "id" || name == "dispute_id" {
			id = c.scalar()
		}
	}
	return id
}
