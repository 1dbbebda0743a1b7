// Package kafka is a queue in one partition of a Kafka topic. It keeps every promise of a queue, at a price that its notes tell.
//
// # A log is not a queue
//
// Kafka hands out ranges of a log, not jobs: it knows no lease of a single record, no delay, no dead letter, and no event that it has seen a week ago. What it does have is one order
// in which everybody sees the records of a partition. That is enough. What is written here is not jobs but commands: store these jobs, lease up to ten of them to me, settle
// that lease. Each handle that needs to know reads them all, from the first, and applies them to a state machine (package state of reference/queue/memory). At the same offset all
// are in the same state, so whether a claim got a job or came too late is decided by its place in the log, and everybody agrees without having talked.
//
//   - A lease is a claim that was first. Its token is a number that grows with each.
//   - A late Settle stands in the log behind the deadline and changes nothing, everywhere.
//   - A known event is skipped when its command is applied, until a command says that it is to be forgotten.
//   - All of an Enqueue, and all that waits while a record is written, is one record: it is there whole or not at all.
//   - A record that was sent twice, because an answer was lost, has the number of the first and is skipped.
//
// # Time
//
// The time is that of the records. The topic asks the broker to stamp them (LogAppendTime). Where it does not (kfake does not), the writer's clock counts, and no instant is
// before an earlier one's: a machine whose clock is ahead then makes the leases of others lapse early, and what is finished be forgotten early. Claims.Settings says which it is.
//
// # What is kept
//
// Everything that happened to an event stands in the log, and what is finished is kept in the memory of each handle that reads: without its payload, which stays in the log and is read
// from there when somebody looks the event up or replays it, some 350 bytes. A replay brings the payload with its command, so that all have it again at the same offset.
//
// Forgetting is a command too. A handle with Options.Retention writes from time to time that what was finished longer ago is to be forgotten. That is decided by the time of the record
// alone: whoever reads the log, now or after a restart, with whatever retention of his own, has forgotten the same events behind it, with all of their memory, and counts the same ones
// as expired. Dead letters, and what is not finished, are never among them. No log becomes shorter by it: what was forgotten still stands there, and is read by each handle that opens
// the queue.
//
// Note: a handle could forget by its own retention, without a record. Two with different ones would then disagree about what is known, and so about every lease that follows.
//
// Note: records with the newer commands (replay, look up, list, forget) have a version of their own, which a program from before them refuses to read. All others are as they were.
//
// # Durability
//
// Enqueue returns after acks=all. By default Kafka never syncs by itself; the topic is made with flush.messages=1, which syncs each record, and only a topic that says so is claimed
// to survive a loss of power; of three replicas, two of which must have it, the loss of a machine is claimed; and the end of processes otherwise. A topic that forgets
// (retention.ms, a week by default), or has several partitions, is refused.
//
// Where records are not synced, a log may come back shorter than it was. Each handle that reads notices (it looks at its last record again after every new connection), says so in
// one error of a Receive, and reads what is left from the beginning. Whoever has a lease from before the loss cannot end with it one that has the same numbers since.
//
// The broker of package child is kfake, which franz-go is tested with, and not Kafka. It can sync each record, but does not look whether that succeeded, and so only the end of
// processes is claimed of it, and nothing if it keeps no files. Figures that are measured with it are figures of kfake, and say nothing about Kafka.
//
// # Notes
//
// Note: a handle that receives, settles or asks for anything reads the whole log first and holds what is not done in memory, and a little of what is. There are no snapshots: a log of
// many millions of events takes minutes to open. A handle that only enqueues reads nothing.
//
// Note: every claim is a record, also one in vain, and so is every question, one for the depth as well as each page of a list. One receiver of a lane asks at a time in each handle;
// several handles may claim the same job, of whom all but one get nothing.
//
// Note: a consumer group per lane, with offsets as the settlement, would be what Kafka is built for. But an offset settles all before it: one job that is tried again
// holds up its partition, or is lost. Share groups (KIP-932, Kafka 4.0) acknowledge single records, but deliver at most a number of times with no place for the dead
// and no delay, and know no events.
//
// Note: partitions would multiply the throughput of one log, by the event's hash. Each would need its own claims, and oldest first would hold within each only.
package kafka
