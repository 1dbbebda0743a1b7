package loadgen

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errCutBody is what a transport reads, or gets for its write, where a request is cut.
var errCutBody = errors.New("request cut in the middle of its body, as planned")

// body is a request body that knows whether it was read and whether the transport is done with it. It also gives the request its shape where neither
// transport nor connection does.
type body struct {
	bytes        bytes.Reader
	read, closed atomic.Bool
	// first is called at the first Read, nil for nothing.
	first func()
	// shape is done by the body itself, Whole if somebody else does it. ctx ends a slow body, gone the request of a client that goes away.
	shape atomic.Uint32
	ctx   context.Context
	gone  context.CancelFunc
}

// reset makes the body of the next request.
func (b *body) reset(content []byte) {
	b.read.Store(false)
	b.closed.Store(false)
	b.shape.Store(uint32(Whole))
	b.first, b.ctx, b.gone = nil, nil, nil
	b.bytes.Reset(content)
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if !b.read.Swap(true) && b.first != nil {
		b.first()
	}
	half := int(b.bytes.Size() / 2)
	sent := int(b.bytes.Size()) - b.bytes.Len()
	switch shape := Shape(b.shape.Load()); {
	case shape == ClientGone:
		n, err := b.bytes.Read(p)
		if b.bytes.Len() == 0 {
			b.gone()
		}
		return n, err
	case shape == Whole:
	case sent < half:
		p = p[:min(len(p), half-sent)]
	case shape == CutBody:
		return 0, errCutBody
	case b.bytes.Len() > 0:
		p = p[:min(len(p), 1)]
		if err := pauseBetween(b.ctx.Done()); err != nil {
			return 0, err
		}
	}
	return b.bytes.Read(p)
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed.Store(true)
	return nil
}

// pauseBetween waits for the next byte of a slow body, or until done is closed.
func pauseBetween(done <-chan struct{}) error {
	timer := time.NewTimer(trickle)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-done:
		return io.ErrClosedPipe
	}
}
