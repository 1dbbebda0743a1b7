package bench

import (
	"maps"

	"floodproof/bench/node"
	"floodproof/reference"
)

// strangers are pipelines that are broken in a way that the smoke scenario cannot show in seconds; scripts run them.
func strangers() map[string]mutant {
	return map[string]mutant{
		// The receiver has a secret that was replaced long ago: it refuses everything, until the provider gives up.
		"stale-secret": {parts: node.Parts{Providers: staleSecrets}, fails: "delivered"},
	}
}

func staleSecrets(providers map[string]reference.ProviderConfig) map[string]reference.ProviderConfig {
	changed := maps.Clone(providers)
	for name, p := range changed {
		if p.Custom != nil { // The secrets of others have a form of their own.
			p.Secrets = []reference.Secret{"the one before"}
			changed[name] = p
		}
	}
	return changed
}
