package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"floodproof/reference"
)

// AddressVariable is the environment variable in which a process of the pipeline finds the queue's server.
const AddressVariable = "FLOODPROOF_QUEUE_ADDRESS"

// SecretVariable is the environment variable in which a target finds a provider's current secret, or the public key where the provider signs with a private
// one. While secrets are being replaced, those before it are still active: they stand in the variable of the same name with _PREVIOUS behind it, one a line.
func SecretVariable(provider string) string {
	return "FLOODPROOF_SECRET_" + strings.ToUpper(strings.ReplaceAll(provider, "-", "_"))
}

// previousSuffix is behind the name of the variable that holds the secrets before the current one.
const previousSuffix = "_PREVIOUS"

// SecretVariables are the environment in which [Providers] finds a provider's active secrets, the current one first.
func SecretVariables(provider string, active []string) []string {
	env := []string{SecretVariable(provider) + "=" + active[0]}
	if len(active) > 1 {
		env = append(env, SecretVariable(provider)+previousSuffix+"="+strings.Join(active[1:], "\n"))
	}
	return env
}

// ProvidersVariable is the environment variable in which a target finds the scenario's own providers: an object in JSON with a description for each name
// (reference.CustomScheme). It is not set where the scenario has none.
const ProvidersVariable = "FLOODPROOF_PROVIDERS"

// SinkVariable is the environment variable in which a target finds the sink's base URL.
const SinkVariable = "FLOODPROOF_SINK"

// Providers is what a receiver of the reference pipeline listens to, by what getenv (os.Getenv) says: every provider with a secret, and those that
// [ProvidersVariable] describes.
func Providers(getenv func(string) string) (map[string]reference.ProviderConfig, error) {
	configs := map[string]reference.ProviderConfig{}
	if text := getenv(ProvidersVariable); text != "" {
		custom := map[string]*reference.CustomScheme{}
		if err := json.Unmarshal([]byte(text), &custom); err != nil {
			return nil, fmt.Errorf("read %s: %w", ProvidersVariable, err)
		}
		for name, scheme := range custom {
			configs[name] = reference.ProviderConfig{Custom: scheme, Secrets: secretsOf(name, getenv)}
		}
	}
	for _, name := range reference.Providers() {
		if secrets := secretsOf(name, getenv); len(secrets) > 0 {
			configs[name] = reference.ProviderConfig{Secrets: secrets}
		}
	}
	return configs, nil
}

// secretsOf are the active secrets of a provider, the current one first.
func secretsOf(name string, getenv func(string) string) []reference.Secret {
	var secrets []reference.Secret
	for _, variable := range []string{SecretVariable(name), SecretVariable(name) + previousSuffix} {
		for line := range strings.Lines(getenv(variable)) {
			if secret := strings.TrimRight(line, "\r\n"); secret != "" {
				secrets = append(secrets, reference.Secret(secret))
			}
		}
	}
	return secrets
}
