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

// SecretVariable is the environment variable in which a target finds a provider's current secret, or the public key where the provider signs with a private
// one. While secrets are being replaced, those before it are still active: they stand in the variable of the same name with _PREVIOUS behind it, one a line.
func SecretVariable(provider string) string {
	return "FLOODPROOF_SECRET_" + strings.ToUpper(strings.ReplaceAll(provider, "-", "_"))
}

// previousSuffix is behind the name of the variable that holds the secrets before the current one.
const previousSuffix = "_PREVIOUS"

// ProvidersVariable is the environment variable in which a target finds the scenario's own providers: an object in JSON with a description for each name
// (reference.CustomScheme). It is not set where the scenario has none.
const ProvidersVariable = "FLOODPROOF_PROVIDERS"

// SinkVariable is the environment variable in which a target finds the sink's base URL.
const SinkVariable = "FLOODPROOF_SINK"
