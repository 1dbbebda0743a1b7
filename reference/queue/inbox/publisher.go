package inbox

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The bounds of one Publish. A call that is larger by itself is alone.
const (
	maxGroup      = 256
	maxGroupBytes = 4 << 20
)

// call is the messages of one Enqueue.
type call struct {
	ctx      context.Context // to leave out what nobody waits for any more
	messages [][]byte
	size     int
	result   chan error
}

// publisher is the one goroutine of a handle that publishes: all calls that wait when a Publish may begin share it.
//
// Note: how many Publish calls are worth to be under way at once is the transport's matter. A service that is asked over HTTP gains by several; a broker that syncs once for all that it
// has gains by one at a time, and as much as waits in it.
type publisher struct {
	transport Transport
	within    time.Duration
	calls     chan *call
	slots     chan struct{} // held while a Publish is under way
	ended     chan struct{}
}

func newPublisher(o *Options) *publisher {
	return &publisher{
		transport: o.Transport, within: o.PublishWithin, calls: make(chan *call, maxGroup), slots: make(chan struct{}, o.Publishes), ended: make(chan struct{}),
	}
}

// do has messages published. An error of ctx leaves open whether they were.
func (p *publisher) do(ctx context.Context, messages [][]byte) error {
	c := &call{ctx: ctx, messages: messages, result: make(chan error, 1)}
	for _, m := range messages {
		c.size += len(m)
	}
	select {
	case p.calls <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *publisher) run() {
	defer close(p.ended)
	var under sync.WaitGroup
	defer under.Wait()
	for first := range p.calls {
		p.slots <- struct{}{}
		group := p.gather(first)
		under.Go(func() {
			defer func() { <-p.slots }()
			p.publish(group)
		})
	}
}

// gather adds the calls that wait, within the bounds.
func (p *publisher) gather(first *call) []*call {
	group, messages, size := []*call{first}, len(first.messages), first.size
	for messages < maxGroup && size < maxGroupBytes {
		select {
		case c, ok := <-p.calls:
			if !ok {
				return group
			}
			group, messages, size = append(group, c), messages+len(c.messages), size+c.size
		default:
			return group
		}
	}
	return group
}

func (p *publisher) publish(group []*call) {
	ctx, cancel := context.WithTimeout(context.Background(), p.within) // not a caller's: it is everybody's
	defer cancel()
	var messages [][]byte
	for _, c := range group {
		if c.ctx.Err() == nil { // who has left was told nothing, and must not fill a broker that has just come back
			messages = append(messages, c.messages...)
		}
	}
	if len(messages) == 0 {
		return
	}
	err := p.transport.Publish(ctx, messages)
	if err != nil {
		err = fmt.Errorf("publish: %w", err)
	}
	for _, c := range group {
		c.result <- err
	}
}

// close ends the goroutine after all that was handed in. Nobody may hand in anything any more.
func (p *publisher) close() {
	close(p.calls)
	<-p.ended
}
