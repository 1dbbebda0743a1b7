package node

import "time"

const (
	// leakBlock is taken every leakEvery: half a GiB a second, by which a limit is reached before anybody has noticed.
	leakBlock = 1 << 20
	leakEvery = 2 * time.Millisecond
	pageBytes = 4096
)

// leaked is memory that nobody gives back.
type leaked struct {
	before *leaked
	block  [leakBlock]byte
}

// leak takes more and more memory and uses it, until the process is gone.
func leak() {
	var last *leaked
	for range time.Tick(leakEvery) {
		last = &leaked{before: last}
		for i := 0; i < leakBlock; i += pageBytes {
			last.block[i] = 1 // what is not touched is not there
		}
	}
}
