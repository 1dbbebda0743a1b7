package tape

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// verifiers check signatures by the published rules, with code of their own.
func verifiers() map[string]func(h http.Header, body []byte, secret string) bool {
	return map[string]func(h http.Header, body []byte, secret string) bool{"stripe": verifyStripe, "shopify": verifyShopify, "github": verifyGitHub}
}

func macOf(secret string, parts ...string) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(strings.Join(parts, "")))
	return m.Sum(nil)
}

// verifyStripe: https://docs.stripe.com/webhooks (November 2026). It refuses what is older than a minute: a signature has to be new.
func verifyStripe(h http.Header, body []byte, secret string) bool {
	stamp, rest, ok := strings.Cut(strings.TrimPrefix(h.Get("Stripe-Signature"), "t="), ",v1=")
	at, err := strconv.ParseInt(stamp, 10, 64)
	if !ok || err != nil || time.Since(time.Unix(at, 0)) > time.Minute {
		return false
	}
	sum, err := hex.DecodeString(rest)
	return err == nil && hmac.Equal(sum, macOf(secret, stamp, ".", string(body)))
}

// verifyShopify: https://shopify.dev/docs/apps/build/webhooks/verify-deliveries (November 2026).
func verifyShopify(h http.Header, body []byte, secret string) bool {
	sum, err := base64.StdEncoding.DecodeString(h.Get("X-Shopify-Hmac-Sha256"))
	return err == nil && hmac.Equal(sum, macOf(secret, string(body)))
}

// verifyGitHub: https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries (November 2026).
func verifyGitHub(h http.Header, body []byte, secret string) bool {
	sum, err := hex.DecodeString(strings.TrimPrefix(h.Get("X-Hub-Signature-256"), "sha256="))
	return err == nil && hmac.Equal(sum, macOf(secret, string(body)))
}
