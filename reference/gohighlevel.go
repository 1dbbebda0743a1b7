package reference

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"floodproof/reference/queue"
)

// highlevelHook knows the webhooks of GoHighLevel's marketplace apps.
//
// Signature: X-GHL-Signature: base64 of an Ed25519 signature of the body. The receiver holds GoHighLevel's public key as it is published: base64 of a
// SubjectPublicKeyInfo, with or without the lines of PEM around it. The older X-WH-Signature (RSA), which ended on 1 July 2026, is never looked at.
// Source: https://marketplace.gohighlevel.com/docs/webhook/WebhookIntegrationGuide (read November 2026).
//
// Note: the documentation advises to refuse a body whose timestamp is older than five minutes. It is the time of the fact, and a retry comes after ten minutes with
// the same body: whoever follows the advice loses what he asked to be sent again. A repeated webhookId is refused by the queue, which knows it for ever.
//
// Event id: /webhookId.
//
// Answers: "retrying only HTTP 429 responses" (https://help.gohighlevel.com/support/solutions/articles/155000007071-automated-webhook-retries, 29 November
// 2025). Any other failure loses the event, so that "not now" is 429 here.
type highlevelHook struct{ keys []ed25519.PublicKey }

// retriesOnly429 implements only429Hook.
func (highlevelHook) retriesOnly429() {}

func newHighLevelHook(secrets []Secret) (hook, error) {
	var h highlevelHook
	var faults []error
	for i, secret := range secrets {
		key, err := parseEd25519(string(secret))
		if err != nil {
			faults = append(faults, fmt.Errorf("key %d: %w", i+1, err))
			continue
		}
		h.keys = append(h.keys, key)
	}
	return h, errors.Join(faults...)
}

var errEd25519 = errors.New("must be a public key of Ed25519 as GoHighLevel prints it, base64 that begins with MCowBQYDK2VwAyEA")

// parseEd25519 reads a public key. Its errors do not show the text, which may be somebody's private key.
func parseEd25519(text string) (ed25519.PublicKey, error) {
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if block, _ := pem.Decode([]byte(text)); block != nil {
		der, err = block.Bytes, nil
	}
	if err != nil {
		return nil, errEd25519
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errEd25519
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, errEd25519
	}
	return key, nil
}

func (h highlevelHook) verify(d *delivery, _ window) error {
	sent, err := base64.StdEncoding.Strict().DecodeString(onlyHeader(d.header, "X-Ghl-Signature"))
	if err != nil || len(sent) != ed25519.SignatureSize {
		return errUnsigned // Some receivers have seen the text N/A here.
	}
	for _, key := range h.keys {
		if ed25519.Verify(key, d.body, sent) {
			return nil
		}
	}
	return errForged
}

func (highlevelHook) split(d *delivery) ([]queue.Job, error) {
	c := jsonCursor{data: d.body}
	if c.peek() != '{' {
		return nil, errMalformed
	}
	job := queue.Job{Payload: d.body}
	var id string
	for key := range c.members {
		switch string(key) {
		case "webhookId":
			job.EventID = c.text()
		case "type":
			job.Type = c.text()
		case "timestamp":
			job.Version = c.millis()
		case "id", "_id":
			id = c.text()
		case "appointment": // The one event whose object is a member of its own.
			for key := range c.members {
				if string(key) == "id" {
					id = c.text()
				}
			}
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
	job.Resource = resource(highlevelKind(job.Type), id)
	return []queue.Job{job}, nil
}

// highlevelKind is the first word of a type: "opportunity" of OpportunityStatusUpdate.
func highlevelKind(event string) string {
	for i := 1; i < len(event); i++ {
		if event[i] >= 'A' && event[i] <= 'Z' {
			return strings.ToLower(event[:i])
		}
	}
	return strings.ToLower(event)
}
