// Package rabbitmq is a queue whose jobs are carried by RabbitMQ, and kept in a store behind it: an inbox (see package inbox) over a quorum queue.
//
// # What makes a publish safe
//
//   - The queue is a quorum queue: what is confirmed is in the write-ahead log of a majority of its members, synced (https://www.rabbitmq.com/docs/quorum-queues, read November 2026).
//     The declaration says so, and the server refuses it if the queue is of another kind: an open handle is the proof.
//
//   - Each message is persistent, and confirmed by the server; a basic.nack is an error.
//
//   - Each message is mandatory. By default RabbitMQ confirms a message that no queue wanted and throws it away: a queue that somebody deleted would be a hole. With mandatory the message is
//     returned before it is confirmed, which is an error; the next call declares the queue anew.
//
//   - A server that is short of memory or disk stops reading from connections that publish, and says so (connection.blocked). Publish waits for a while and then gives an error, so that
//     the receiver answers 503 instead of nothing. What was written by then may still be taken later; it is known again.
//
//   - Publishing and consuming have a connection each: the server would stop reading acknowledgements too, and nothing would ever drain the queue that the memory is short for.
//
//   - A queue that was just made is not published to yet. RabbitMQ 3.10.8 that was killed right after it had made a queue and confirmed the first messages came back without a leader for it, each
//     of three times, and never took a message again. Probably it writes down the queue's name later than it confirms (compare
//     https://github.com/rabbitmq/rabbitmq-server/issues/15725). Options.YoungFor waits that out.
//
// # What keeps a message from being dropped
//
// Nothing here rejects or requeues a message: it is acknowledged, or comes again when its connection is gone. Even that counts as a delivery, and since version 4.0 a quorum queue
// throws a message away after 20 of them (https://www.rabbitmq.com/blog/2024/08/28/quorum-queues-in-4.0, read November 2026); there the queue is declared without a limit. Should a policy
// bound its length, it rejects what is new (x-overflow) instead of dropping what is old. A policy that lets messages or the queue expire (message-ttl, expires) cannot be seen
// through AMQP, and must not match it.
//
// # Notes
//
// Note: the claim is the loss of power, and not that of a machine: how many members the queue has cannot be seen through AMQP. A cluster of three makes it three.
//
// Note: whether the server's directory lives in memory cannot be seen either. It must not.
//
// Note: AMQP tells how many messages are ready, and not how many are out with somebody. The depth counts the ready ones and those of its own handle; what another process has
// fetched and not yet stored is missing from it, for some milliseconds, or as long as that process is stopped.
//
// Note: the client's own recovery of connections is not used. A publish that was under way is then neither confirmed nor failed, and "keeps succeeding" is the defect that others
// have shipped. Here a broken connection fails all that was under way on it, and the next call makes a new one.
//
// Note: x-single-active-consumer would keep the movers of several processes apart, but one that is stopped would hold up all until its heartbeats are missed.
package rabbitmq
