package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"net/http"
)

// headers are the names of a provider's headers in the form in which net/http keeps and sends them: X-GitHub-Event becomes X-Github-Event. Header names
// are case-insensitive (RFC 9110, section 5.1), and a receiver that compares them otherwise fails behind any proxy.
type headers []string

// headerNames takes the names as the provider's documentation spells them.
func headerNames(names ...string) headers {
	h := make(headers, len(names))
	for i, name := range names {
		h[i] = http.CanonicalHeaderKey(name)
	}
	return h
}

// set sets every header to the value of the same position. All values share one allocation.
func (h headers) set(r *Request, values ...string) {
	if r.Header == nil {
		r.Header = make(http.Header, 16)
	}
	for i, name := range h {
		r.Header[name] = values[i : i+1 : i+1]
	}
}

// firstSecret is the secret of a provider without rotation. Without any secret it is empty: the signature is then well-formed and wrong.
func firstSecret(s Signing) string {
	if len(s.Secrets) == 0 {
		return ""
	}
	return s.Secrets[0]
}

// sum writes the parts to a new HMAC and appends its value to dst.
func sum(dst []byte, newHash func() hash.Hash, secret string, parts ...[]byte) []byte {
	mac := hmac.New(newHash, []byte(secret))
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(dst)
}

// sha256Sum is sum with SHA-256.
func sha256Sum(dst []byte, secret string, parts ...[]byte) []byte {
	return sum(dst, sha256.New, secret, parts...)
}
