// Package nats is a queue in NATS JetStream 2.12 or newer: one stream for each namespace, one consumer for each lane, and atomic batches for everything that is
// written. Any number of receivers and workers on any number of machines share it. The server may be anybody's; package child is one in the program itself.
//
// # What stands in the stream
//
// A job is a message on a subject that is made of its event's hash, and stays there for ever; subjects.go lists them all. What happened to the job last is another message, its state:
// leased until when, waiting until when, done, dead, dropped; with it are kept the steps that are finished, how the attempts before ended, and what people did. The stream keeps the last message of each subject and has no other limit, so that neither a job nor a dead letter is
// ever trimmed; a stream that somebody gave one is refused.
//
// # Durability
//
// JetStream acknowledges by default what it has written but not synced, and syncs every two minutes. With sync_interval "always" it syncs first, and only then does this
// queue claim to survive a loss of power. sync_interval is the server's and visible to its system account alone, unless that exports $SYS.REQ.SERVER.PING.JSZ to
// the queue's account, as the server of package child does; of a server that does not tell, the queue claims the end of processes and says so in its settings.
// The stream has one replica: whoever loses the machine's disk loses the queue.
//
// # How writes are shared
//
// One goroutine of each handle publishes (writer.go): all operations that wait when the batch before is stored (enqueue, claim, settle, extend) make the next one. Each
// message that changes something names the sequence that its subject must still have. A batch is stored whole or, if one condition fails, not at all; the writer then asks the
// server who was first, drops what lost, and repeats the rest. So a known event keeps no new one out.
//
// Events are known again by their subject, for ever, and not by Nats-Msg-Id, whose window is two minutes by default and is kept in memory.
//
// # Leases
//
// The consumer hands each job that is ready to one receiver, which then writes a lease: a state under the condition that the one it has seen is still the last. The sequence
// of the lease is its token. A delivery with a negative acknowledgement and a delay comes again after that delay, which gives each lease, prolongation and retry a time of its
// own, whatever the consumer's ack_wait. What comes again is looked at: the lease may have been prolonged, the job may be done, another message may bring it.
//
// Settle is a state under the condition that the lease is still the last thing that happened, written before its deadline by the server's clock. JetStream's own
// acknowledgement, which it takes however late it comes and from whomever, decides nothing; it is sent afterwards and may be lost.
//
// # Debouncing
//
// The updates of one resource share a row (row.go): which version was the highest, which job waits for the end of the window, which is leased, and when the window opened and ends. Whatever
// changes one of them reads the row just before its batch is sent, and is stored with the new row under the condition that the old one is still there (sheet.go); if it is not, the
// row is read again. So there is one order of what happened to a resource, whichever processes took part, and a crash at any instruction leaves all of a change or nothing. Updates that
// several callers of a handle bring at the same time are one change.
//
// There is no timer but the consumer's own. A job that waits for its window is delivered when it comes, looked at, and given back until its window ends; of one that was superseded the
// next look finds it done. A job that waits for another of its resource is given back until that lease ends, and is written to the line anew if it ends sooner, in the batch that ends it.
// What comes too early is given back again, what comes too late was due before: a delivery decides nothing. Windows are by the server's clock.
//
// # Order
//
// A server delivers again before it delivers anew. A job whose lease or delay ended while others wait is therefore not leased at once but written to the end of the line, behind
// those that were due before it. Retry without a delay goes there in the batch that settles.
//
// # Notes
//
// Note: message schedules (Nats-Schedule, 2.12) would be timers without a consumer. When one fires the server purges its subject, together with a replacement that was stored
// meanwhile (server/stream.go of 2.14 and 2.15, Nats-Schedule-Next), and what it publishes is subject to no condition. They are not used, and the stream does not
// allow them; TestReplacedAtTheMomentItFires replaces updates by the hundred while they fire.
//
// Note: counts travel as one more message of each batch (tally.go), one for each handle that ever was, so that they are exact after any crash. Counting subjects on the server
// would walk over all finished jobs and hold up the writers meanwhile.
//
// Note: an atomic batch costs the server of 2.15 a directory of its own and several syncs, about the same for one message as for a hundred. A single caller is
// slow for that reason; 64 of them reach about nine tenths of what one publisher of bare batches of 64 does (median of three interleaved runs beside other load, November 2026,
// two cores, 0.65 to 1.1). A worker that takes and settles 64 jobs at a time has about a tenth of the rate of fetch and acknowledge alone, which is the
// price of a lease that cannot be settled late. The benchmarks in this package repeat both.
//
// Note: the server keeps all subjects in memory, two for each event, three after a retry without a delay, and one for each resource that was ever debounced.
//
// Note: steps and history could be messages of their own. They would be as many subjects again, and a batch that ends a lease would have to read before it knows how many there are. In
// the state they cost a job that never failed six bytes; what is kept is bounded (state.go), so that it fits a message.
//
// Note: a pull request is not cancelled by the server when its caller leaves. Its subscription is drained, and a message that was on its way is given back at once.
package nats
