// Package sqlite is the embedded default: the queue and the event store of a pipeline in one SQLite file with the payloads beside it, without a server and
// without cgo. Any number of receivers and workers of one machine share it.
//
// # Durability
//
// An Enqueue is answered after its transaction was synced to the disk (WAL with synchronous=FULL), and so survives a loss of power; with
// SynchronousNormal, or in a directory that lives in memory, it survives the end of the processes only, and the claims say so. On
// macOS F_FULLFSYNC is used, because fsync stops at the drive's cache there. The directory must be on a local file system: WAL needs
// shared memory (https://www.sqlite.org/wal.html).
//
// Leases and settlements are not synced by themselves. A loss of power may take the last of them, and their jobs are then leased once
// more, as after any crash of a worker; an event that was acknowledged is never among what it takes. They stand in the same log,
// so that the next Enqueue of any process syncs them too.
//
// # Where the payloads are
//
// In append-only segment files, one at a time for each process that enqueues (segment.go); a row of the database says in which, and where. They are
// written and synced before the transaction that points to them is. Each has a checksum: one that was damaged makes its job a dead
// letter, and the others go on.
//
// # How writes are shared
//
// SQLite has one writer at a time. One goroutine of each process writes (writer.go): it waits for the write lock of the machine (lock.go), takes
// all operations that have come meanwhile (enqueue, claim, settle, extend), runs them in one transaction, syncs payloads and log once if an Enqueue is among them, frees the
// lock, and answers all callers. The more callers wait, the more share a sync.
//
// # How work is found
//
// A Receive looks at the partial index of due jobs every few milliseconds, without a lock that a writer needs, and at once
// after an Enqueue of its own process. Only when something is due does it ask the writer for a claim. A lease that lapsed is claimed like a due
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
// Everything. Finished jobs stay, with their payload: they are the memory of deduplication, and the event store ([Queue.Event]). Every
// attempt that failed is written down with its time and reason. To trim a file is a decision for a person; deleting from
// it behind the queue's back makes the counts of Depth wrong.
//
// # Measured
//
// On two cores, November 2026, medians of five interleaved runs with 64 callers beside other load; ratios, because absolute figures belong to one machine.
// The benchmarks in this package repeat them.
//
// Note: a file that several processes share through the fair lock was measured against two other designs, with two receivers and a
// worker at 1,200 and 2,300 events a second. SQLite's own polling (busy_timeout) had 1.6 and 5 times the median
// and 2.7 and 15 times the 99th percentile of an Enqueue, and at the higher rate its worker fell behind. One owning
// process, reached by the others through a Unix socket, had 0.8 and 1.5 times the median and 1.3 and 3.8 times the 99th percentile,
// and would be one more process whose death stops everybody.
//
// Note: an Enqueue of 1.5 KB reaches about an eighth of the rate of a bare append with one sync per 64 payloads, the ceiling of any design, and takes
// several times its processor time (measured when payloads were zstd bodies in the database). A worker that
// claims and settles everything in another process leaves it about two thirds of its rate.
//
// Note: the driver's connection is used directly and not through database/sql, which took 8 % of the insert rate and would hide on which
// connection a transaction runs. fdatasync instead of the driver's default fsync gained about as much; it is switched for the whole process.
//
// Note: events are known again by a unique index on their provider and id. A 16-byte hash in place of the texts saved half a
// percent of the file, and a table of hashes without rowid two, neither with a difference in speed beyond the noise; texts cannot collide, and can be read.
//
// Note: payloads are compressed one by one, without a dictionary, with s2. zstd at its fastest level makes them a quarter smaller, but took a quarter of
// a busy receiver's time, four times as much as s2: its tables are too large to stay in the processor's cache between two requests.
//
// Note: payloads stood in a table of the database at first. Beside it they take 7 % less room with real bodies. 64 callers store bodies of 8 KB at 1.16 times the
// rate (1.06 beside a worker) and bodies of 1.5 KB at 0.90 (0.96): medians of three interleaved runs beside other load. The second sync costs
// small bodies what the smaller log saves them.
//
// Note: the other embedded engine that survives a loss of power was measured too: NATS JetStream 2.14 as a child process with sync_interval "always", whatever waits of 64
// callers published as one atomic batch of up to 256. It stored 1.5 KB bodies at a seventh of the rate of this queue (six interleaved runs
// beside other load, half of them with Nats-Msg-Id), took 2.8 times the processor time for each, both processes together, and remembers ids for a
// window only. At 2,300 a second its 99th percentile was over 100 ms in all six runs, ours under 30 ms in five.
package sqlite
