package harness

import (
	"errors"
	"io"
	"sync"
)

// behind is an io.WriteCloser whose disk is behind a goroutine: Write copies and returns. The ledger is written by the goroutine that sends the load and by the
// sink's calls, and a write to a file system that is busy with other people's fsyncs takes tens of milliseconds now and then.
//
// What is not written yet is bounded; beyond that Write waits. The first error of the disk comes back from a later Write and from Close.
type behind struct {
	out   io.WriteCloser
	queue chan []byte
	ended chan struct{}

	mu  sync.Mutex
	err error
}

// behindBlocks bounds what may wait, in calls of Write: the ledger writes blocks of 64 KiB.
const behindBlocks = 64

func writeBehind(out io.WriteCloser) *behind {
	b := &behind{out: out, queue: make(chan []byte, behindBlocks), ended: make(chan struct{})}
	go b.run()
	return b
}

func (b *behind) run() {
	defer close(b.ended)
	for block := range b.queue {
		if b.failed() == nil {
			_, err := b.out.Write(block)
			b.fail(err)
		}
	}
}

func (b *behind) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = errors.Join(b.err, err)
}

func (b *behind) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Write takes a copy of p. It must not be called after Close.
func (b *behind) Write(p []byte) (int, error) {
	if err := b.failed(); err != nil {
		return 0, err
	}
	b.queue <- append([]byte(nil), p...)
	return len(p), nil
}

// Close waits until everything is written and closes the file. It must be called once.
func (b *behind) Close() error {
	close(b.queue)
	<-b.ended
	b.fail(b.out.Close())
	return b.failed()
}
