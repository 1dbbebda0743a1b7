// Package inbox makes a queue of a transport and a store: of a broker that carries messages durably and knows little else, and of a queue that knows everything else. It is the pattern
// that is called transactional inbox, or idempotent consumer (https://microservices.io/patterns/communication-style/idempotent-consumer.html, read November 2026).
//
// Few brokers are a queue by themselves. Most know no event that they have seen a month ago, no lease that outlives a connection, no delay, no dead letter that is never trimmed. All of them
// can take a message, sync it, and give it to somebody until it is acknowledged. That is all that is asked of a [Transport]; the [Store] does the rest.
//
// # The way of a job
//
//  1. Enqueue publishes it to the transport, and returns nil when it is durable there. Nothing else happens in the receiver.
//  2. A mover fetches it. Each handle has one, from the first call that wants to know what there is (Receive, Depth, DeadLetters, Redrive, Drop).
//  3. The mover enqueues it in the store, which skips it if it knows its event.
//  4. Only when the store has it durably, the mover acknowledges it to the transport.
//  5. Receive, Settle and everything else are the store's.
//
// # Why nothing is lost and nothing is doubled
//
// At every instant from the nil of Enqueue on, the job is durable in the transport, in the store, or in both. What happens when a process dies at any point:
//
//   - Before the broker has it: Enqueue gives an error, or nothing at all, and the provider sends the event again.
//   - When the broker has it and the answer is lost: the same. The event is published twice, and the store knows the second.
//   - After the fetch, before the store has it: it was not acknowledged and comes again.
//   - After the store has it, before the acknowledgement: it comes again, and the store knows it, whatever became of it meanwhile.
//
// So the transport may give each message as often as it likes and in any order; it must only not forget one. Deduplication lasts as long as the store's, and has to last longer than
// the longest stay of a message in the transport, which "for ever" does.
//
// # Messages
//
// All jobs of an Enqueue are one message, compressed and with a checksum: they arrive together or not at all. If that is more than the transport takes, the call becomes several
// messages; if publishing fails then, some may arrive, and nobody has been told that any did.
//
// A message that cannot be read becomes a dead letter of the provider "inbox", with its bytes as the payload and the reason; its id is their hash. A message that can be read but that the
// store refuses is tried again for ever, behind all others. It is never acknowledged, and so shows in the depth.
//
// # Claims
//
// The durability is the weaker of transport and store: a job is in only one of them for most of its life. What is known again, delays and debouncing are the store's. Settings and version
// are those of both.
//
// # Notes
//
// Note: while the broker is down, what is in the store is still worked on; Enqueue and Depth give errors.
//
// Note: a job is as old as its arrival in the store: oldest first holds among what has arrived, and a window of debouncing begins then. Depth adds the time in the transport to the age of
// what this handle has moved itself.
//
// Note: the alternative is to build leases, delays and deduplication out of the broker's own means: a plugin for delays, a dead-letter exchange, a second store for known ids. Each has a
// gap between two systems without a common transaction, which is where pipelines lose events. Here is one gap, and it is on the safe side.
//
// Note: the store is written once for each event, as without the transport. What the transport brings is to take events in while the store is slow or away, and a broker that
// replicates. On one machine it costs more than it brings; the comparison shows how much.
package inbox
