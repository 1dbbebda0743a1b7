// Package reference is a webhook pipeline that keeps its promises: acknowledge in milliseconds, queue, and work later. It is small
// enough to read in one sitting and depends on nothing but its queue, so it can be lifted out and used as it is.
//
//	provider ──POST──> Receiver ──Enqueue──> queue ──Receive──> Worker ──Handle──> downstream
//	                   │ limit the body        │ durable,         │ lease, back off,   one call, with
//	                   │ verify signature      │ known ids        │ prolong, settle    Idempotency-Key
//	                   │ split into events     │ only once        │
//	                   <── 200 after Enqueue   └─ dead letters <──┘ Done | Retry | Dead
//
// # What is promised, and where each promise is kept
//
// Nothing acknowledged is lost. Receiver.accept answers 200 only after Enqueue returned nil, and Enqueue returns nil only when
// the events are durable as queue.Claims says. Every doubt is a 503, and the provider comes again. From there a job leaves the queue only by
// being settled; a worker that dies leaves a lease that lapses.
//
// Nothing takes effect twice. The queue knows an event by (provider, event id) for as long as its claims say, however often it is
// delivered. Behind it a job can still be leased twice (a crash after the effect and before the settle), and no queue can
// prevent that; so the effect itself carries the event id as its idempotency key (SinkHandler), and the downstream takes it once. A downstream
// without keys has to be looked at before it is acted on, by the Handler.
//
// Nothing forged is taken. Each provider's file (stripe.go, shopify.go and so on, custom.go for one that a configuration describes) checks the signature over the raw
// bytes, in constant time, under every active secret, and within the provider's own tolerance, before anything is parsed.
//
// Nothing is dropped in silence. A malformed item of a signed batch is stored as a dead letter beside its siblings; a job that cannot
// succeed becomes one with its reason (Permanent); a job that fails otherwise is tried again until it has had both its
// attempts and its time (Worker.MaxAttempts, Worker.GiveUpAfter), so no outage or throttling shorter than that costs a healthy event.
//
// Nothing is unbounded: bodies, headers, batches and waiting requests in the receiver, jobs in hand and every wait in the worker.
//
// Not promised: order. Two events of one resource can be worked on at once. Job.Version, taken from the payload's own
// time, lets a handler tell older from newer.
package reference
