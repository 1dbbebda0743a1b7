package harness

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"strings"
)

// randomID is n characters that nobody can guess, of letters and digits.
func randomID(n int) string {
	raw := make([]byte, n)
	_, _ = rand.Read(raw) // never fails: crypto/rand crashes the program instead
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw))[:n]
}

// randomSecret is a signing secret for one provider and one run.
func randomSecret() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw)
	return "whsec_" + hex.EncodeToString(raw)
}

// SecretVariable is the environment variable in which a target finds a provider's secret.
func SecretVariable(provider string) string {
	return "FLOODPROOF_SECRET_" + strings.ToUpper(strings.ReplaceAll(provider, "-", "_"))
}

// SinkVariable is the environment variable in which a target finds the sink's base URL.
const SinkVariable = "FLOODPROOF_SINK"
