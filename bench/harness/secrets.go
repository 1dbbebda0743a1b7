package harness

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"floodproof/loadgen/provider"
)

// randomID is n characters that nobody can guess, of letters and digits.
func randomID(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand crashes the program instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))[:n]
}

// randomSecret is a signing secret for one provider and one run, in that provider's form.
func randomSecret(p *provider.Provider) string {
	var raw [32]byte
	_, _ = rand.Read(raw[:])
	if p.NewSecret != nil {
		return p.NewSecret(raw)
	}
	return "whsec_" + hex.EncodeToString(raw[:24])
}

// verification is what a target is given to verify a provider's signatures.
func verification(p *provider.Provider, secret string) string {
	if p.Verification != nil {
		return p.Verification(secret)
	}
	return secret
}
