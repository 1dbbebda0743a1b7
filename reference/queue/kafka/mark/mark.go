// Package mark is how the Kafka queue knows the broker that is built in, without carrying it around.
package mark

import "runtime/debug"

// ClusterPrefix begins the cluster's id, by which the queue knows this broker. What follows is how it keeps records: sync, nosync or memory.
const ClusterPrefix = "floodproof-kfake-"

const module = "github.com/twmb/franz-go/pkg/kfake"

// Version names the broker that is built in.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == module {
				return "kfake " + m.Version
			}
		}
	}
	return "kfake of an unknown version"
}
