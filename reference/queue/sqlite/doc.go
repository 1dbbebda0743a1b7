// Package sqlite is the embedded default: the queue and the event store of a pipeline in one directory, without a server and
// without cgo: a log of what was enqueued, and an SQLite database of what became of it. Any number of receivers and workers of one machine share it.
//
// # Durability
//
// An Enqueue is answered after its jobs were written to the log and synced to the disk, and so survives a loss of power; with
// SynchronousNormal, or in a directory that lives in memory, it survives the end of the processes only, and the claims say so. On
// macOS F_FULLFSYNC is used, because fsync stops at the drive's cache there. The directory must be on a local file system: WAL needs
// shared memory (https://www.sqlite.org/wal.html).
//
// Leases and settlements stand in the database alone, which is synced once a second. A loss of power may take the last of them, and their jobs are then leased once
// more, as after any crash of a worker; an event that was acknowledged is never among what it takes.
//
// # The log
//
// Each process that enqueues appends to segment files of its own (segment.go). One goroutine of it writes whatever waits, syncs once, and answers all
// callers (intake.go): no other process has a part in that, and no database. A record is the whole job with a checksum (record.go). After the
// sync the process publishes how far its segment is safe, for the others to read.
//
// # How the log gets into the database
//
// A process that receives looks every few milliseconds at what was published and inserts a small row for each job that is not known yet, in one
// transaction with the note of how far each segment is indexed (index.go). That may be done twice, and so needs no owner. If nobody receives, those who enqueue do it after a while.
// Depth and Event also look into the part of the log that is not indexed yet.
//
// Whoever opens the queue indexes what dead processes have left, and cuts their segments; a lock on each segment tells whose owner lives (recover.go). A
// record at the end of a segment that is not whole was never acknowledged. Damage before that end becomes a dead letter that says where it is; a record that is damaged
// later makes its job a dead letter. The others go on.
//
// # How writes to the database are shared
//
// SQLite has one writer at a time. One goroutine of each process writes (writer.go): it waits for the write lock of the machine (lock.go), takes
// all operations that have come meanwhile (index, claim, settle, extend), runs them in one transaction, frees the lock, and answers all callers.
//
// # How work is found
//
// A Receive looks at the partial index of due jobs every few milliseconds, without a lock that a writer needs, and at once
// after its own process has indexed something. Only when something is due does it ask the writer for a claim. A lease that lapsed is claimed like a due
// job. Leases are fenced by a token that grows with each; what is done under an old one changes nothing.
//
// # How the log stays short
//
// A checkpointer in each process copies the write-ahead log back beside the writers, and once it is at its limit keeps them out for as long as the rest
// takes, so that it begins anew (checkpoint.go). A process that is stopped with SIGSTOP while it holds a lock holds up the others,
// as with every lock; one that dies does not.
//
// # What is kept
//
// Everything, unless Options.Retention says for how long. Finished jobs stay, with their payload: they are the memory of deduplication, and the event store ([Queue.Event],
// [Queue.Events]). Every attempt that failed is written down with its time and reason, and whatever a person did with an event by hand (redrive.go). With a retention, what was
// finished longer ago is deleted in small transactions, and then the segments that hold nothing else (retention.go); dead letters stay until a person decides. Deleting from
// the file behind the queue's back makes the counts of Depth wrong.
//
// # Measured
//
// On two cores, November 2026, with 64 callers beside other load; ratios, because absolute figures belong to one machine.
// The benchmarks in this package repeat them.
//
// Note: until it had the log, this queue inserted each job into the database before it answered: one transaction for whatever waited, under a lock that all processes
// share. Against a bare append with one sync per 64 payloads of 1.5 KB, the ceiling of any design, that reached an eighth of the rate; the log reaches it. What
// it costs is that each job is written twice, small, and becomes visible to workers some milliseconds after the answer.
//
// Note: of the designs without the log two others were measured, with two receivers and a worker at 1,200 and 2,300 events a second. SQLite's own polling (busy_timeout) had 1.6 and 5 times the median
// and 2.7 and 15 times the 99th percentile of an Enqueue under the fair lock, and at the higher rate its worker fell behind. One owning
// process, reached by the others through a Unix socket, had 0.8 and 1.5 times the median and 1.3 and 3.8 times the 99th percentile,
// and would be one more process whose death stops everybody.
//
// Note: the driver's connection is used directly and not through database/sql, which took 8 % of the insert rate and would hide on which
// connection a transaction runs. fdatasync instead of the driver's default fsync gained about as much; it is switched for the whole process.
//
// Note: events are known again by a unique index on their provider and id. A 16-byte hash in place of the texts saved half a
// percent of the file, and a table of hashes without rowid two, neither with a difference in speed beyond the noise; texts cannot collide, and can be read.
//
// Note: the other embedded engine that survives a loss of power was measured too: NATS JetStream 2.14 as a child process with sync_interval "always", whatever waits of 64
// callers published as one atomic batch of up to 256. It stored 1.5 KB bodies at a seventh of the rate of this queue as it was without the log (six interleaved runs
// beside other load, half of them with Nats-Msg-Id), took 2.8 times the processor time for each, both processes together, and remembers ids for a
// window only. At 2,300 a second its 99th percentile was over 100 ms in all six runs, ours under 30 ms in five.
package sqlite
