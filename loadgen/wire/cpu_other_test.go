//go:build !unix

package wire

import "time"

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }
