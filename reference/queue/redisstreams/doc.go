// Package redisstreams is the queue in a Redis (or Valkey) server: streams with a consumer group as the lines, sorted sets for what comes later, and a hash for each
// job. Receivers and workers may be on as many machines as you like.
//
// # Durability
//
// A server with appendonly yes and appendfsync always, and no-appendfsync-on-rewrite no, writes and syncs its append-only file before it answers: what was
// acknowledged survives a loss of power. Open asks the server what is in force, and claims accordingly: with appendfsync no it survives SIGKILL; with
// everysec, without the file, or of a server that does not tell, nothing is claimed. Redis replicates without waiting, so that what a machine
// had acknowledged last is lost with it.
//
// With Options.Replicas everything waits, by WAIT, until so many replicas have it too, in their memory: the loss of the primary is then survived if the replica with the highest offset takes
// over, as Redis Sentinel chooses. Give the address with all hosts; each new connection goes to the one that is the primary. Set min-replicas-to-write on the servers too: a primary
// that is cut off from everybody then refuses at once, and does not take what it will have to forget.
//
// Note: everysec survives SIGKILL while the disk keeps up, and is claimed to survive nothing all the same: when a sync takes longer than a second, Redis answers for up to two
// without having written (flushAppendOnlyFile in https://github.com/redis/redis/blob/7.0/src/aof.c, read 2026-11), and a SIGKILL takes that.
//
// Note: WAITAOF, which asks for a sync where it is needed, came with Redis 7.2, and within a script it does not wait.
//
// # How writes are shared
//
// The server runs one command at a time, and syncs once for all that it ran in a turn. All calls that wait here become one script, and so one round trip (commit.go); two
// are under way at once, so that the server does not wait for us. Whatever must happen together happens in one script, on the server, by its clock: lua/common.lua
// describes the keys. Scripts are named by their hash and sent again to a server that has forgotten them.
//
// # How work is found
//
// A line is a stream. Whoever puts a job into it first moves there what became due before: delayed jobs and lapsed leases. So the order in the stream is the
// order in which jobs became due, and a Receive takes the next ones. One that finds nothing blocks on the stream as a reader without a group, which takes
// nothing, and looks again at least ten times a second, because a delay may be over.
//
// A lease is a pending entry of the group, a deadline in a sorted set, and a token in the job's hash that grows with each lease; what is done under an old
// token changes nothing. A job that is settled, given back or lapsed is acknowledged and deleted from the stream: pending entries are leases and nothing else.
//
// Note: XAUTOCLAIM is not used. It knows one idle time for all, while leases are as long as their receivers say and can be extended; it walks over everything that
// is pending to find what lapsed; and it hands over a job without a new token, so that the old owner's acknowledgement would count.
//
// Note: all receivers are one consumer of the group. Consumers with names of their own would pile up with each restart, and one that is deleted takes its
// pending entries with it; who owns a job is said by the token.
//
// # Debouncing
//
// What is known of the updates of one resource is a hash (lua/rows.lua), which changes in the script that changes the job which is the reason. The newest job waits among
// what comes later until its window ends, by the server's clock; one that comes to its turn while another of the resource is leased waits for the end of that lease. The
// hash of a resource stays for as long as finished events are known: some 230 bytes for each resource that ever had an update, by default for ever.
//
// # Memory
//
// Everything is in the server's memory. When that is full a server that evicts throws away events, silently: Open refuses it. One with noeviction refuses
// Enqueue, for all jobs of the call, and goes on to lease and settle, which makes room.
//
// A waiting event of 1.5 KB takes 1.1 KB, compressed, and a finished one 170 bytes for as long as it is known, which by default is for ever (measured with Redis 7.0 and
// ids of 28 bytes): a million events a day need 5 GB a month. Options.DedupWindow bounds it. Dead letters stand in a stream of their own that nothing trims.
//
// # What is kept
//
// Of an event that is not finished, everything: its attempts that failed, the newest 256, and what people did with it. Of a finished one nothing but that it is known, because memory is what
// this queue has least of. Options.Retention says for how long it is kept nevertheless, to be looked up, listed and replayed: it then takes 650 bytes more than while it waited, so
// that a month of a million events a day, of 1.5 KB each, is more than 50 GB and belongs into another store. The server ends it by its own clock. The order of coming, a stream of names, is swept
// by whoever has the queue open (retention.go).
//
// Without a retention there is no such stream, and [Queue.Events] lists what is leased and nothing else: errors.ErrUnsupported.
//
// # Measured
//
// On two cores beside other load, November 2026, with appendfsync always; ratios, because absolute figures belong to one machine. The benchmarks in this package
// repeat them.
//
// 64 callers with a body of 1.5 KB each store as many a second as one client that adds the same bodies to a stream in two pipelines of 32, without
// deduplication and without anybody waiting for an answer: 0.92, 0.99 and 1.4 times as many, medians of three series of five or six interleaved runs. What the
// scripts cost, compression saves the disk. A worker that claims and settles alone gets through about half of that, because the server syncs leases and
// settlements too: always is always.
//
// With a retention the server needs 1.4 to 1.5 times the processor time for a claim and its settlement, and 1.2 to 1.3 times for storing an event; without one nothing that could be measured beside
// the scatter (twice two runs of 20,000 events each, in alternation with the version that had none).
//
// Note: a goroutine that sends lets the others run once before it takes what waits. Without that it takes the first few of those that were just answered, and
// the rest wait for the next sync: 0.7 of the rate.
//
// Note: the event stands in the hash of its job, so that the one command that stores it also says whether it was known. In a key of its own it
// costs one more of each.
package redisstreams
