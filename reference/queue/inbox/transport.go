package inbox

import (
	"context"

	"floodproof/reference/queue"
)

// Transport carries messages durably from those who publish to those who fetch; each may come more than once, in any order. All methods may be called concurrently. An error
// means that nobody knows; the transport heals by itself, and a later call may succeed.
type Transport interface {
	// Publish returns nil only when all messages are durable as Promise says; all or none is not required: what was published of a failed call is known again by
	// its events. It must not wait for ever for a broker that takes nothing.
	Publish(ctx context.Context, messages [][]byte) error
	// Fetch waits for at least one message and returns up to max, or ctx's error. What is not acknowledged comes again.
	Fetch(ctx context.Context, max int) ([]Message, error)
	// Ack takes messages away for good. A message whose connection or visibility is gone may fail: it comes again.
	Ack(ctx context.Context, messages []Message) error
	// Close gives back what the transport took. Messages that were fetched and not acknowledged come again, to somebody else. The second call returns nil.
	Close(ctx context.Context) error
}

// Message is what came over a transport.
type Message struct {
	Body []byte
	// Handle is the transport's own: what it needs to acknowledge the message.
	Handle any
}

// Promise is what a transport says about itself.
type Promise struct {
	// Durability is what a Publish that returned nil survives; "" counts as none.
	Durability queue.Durability
	// MaxMessage is the largest message in bytes that Publish takes; 0 is no limit worth the name.
	MaxMessage int
	// Version is that of the broker, Settings are the values that matter for durability and speed, both from the broker itself.
	Version  string
	Settings map[string]string
}

// Describer is a transport that knows what it promises (optional). One that does not is claimed to survive nothing.
type Describer interface {
	Promise(ctx context.Context) (Promise, error)
}

// Waiter is a transport that can be asked how many messages are not yet acknowledged (optional), those that were fetched included. Without it, what waits in the transport
// is missing from the depth.
type Waiter interface {
	Waiting(ctx context.Context) (int64, error)
}
