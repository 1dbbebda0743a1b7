// Package postgres is a queue in a schema of a PostgreSQL database (14 or later), for pipelines that have one anyway. Any number of receivers and
// workers on any number of machines share it; all times are the server's.
//
// # Durability
//
// Everything is answered after its transaction was committed with synchronous_commit=on, and so survives a loss of power, as long as the
// server's own settings let it: fsync and full_page_writes. [Queue.Claims] asks the server for what is in force and claims less where it is less:
//
//	synchronous_commit=on, fsync=on, full_page_writes=on   power-loss
//	the same, and a synchronous standby, see below         failover
//	fsync=off, or full_page_writes=off                     process
//	data directory in memory (on this machine, Linux)      process
//	macOS without wal_sync_method=fsync_writethrough       process
//	Options.AsyncCommit                                    none
//	unlogged tables                                        none
//
// AsyncCommit claims nothing, not even "process": what was acknowledged waits in the server's own memory for up to three times wal_writer_delay, and
// a SIGKILL of the server takes it (https://www.postgresql.org/docs/15/wal-async-commit.html, read November 2026; a test does it).
//
// Leases and settlements are committed like events. A lease that the server forgot would be given out again with the same token, and
// its first owner could settle in the second one's name.
//
// A synchronous standby (synchronous_standby_names) has what was acknowledged when it takes over; that is claimed of a URL with which it is found then:
// postgres://user:password@one,two/database?target_session_attrs=read-write. Whoever promotes must choose a standby that was synchronous.
//
// # Where things are
//
// An event is a row of events, which never changes: its texts, and its payload, compressed by s2 at the receiver and not again by the server. A job is a narrow row of jobs: when
// it may be leased, its token, its attempts. It is updated by a claim and deleted when it is done or dead. Dead letters, finished jobs, attempts that
// failed, what people did, steps, and counts of what is finished are rows that are added. So what an update leaves behind is some sixty bytes and not a payload, and the
// table that vacuum has to keep up with is as large as the backlog.
//
// Where an event stands is said by the table that has its id: done, dead, or else jobs. The ids of events are the order in which they came; [Queue.Events] goes along
// them, a stretch at a time, and finds where to begin by a block range index on the time of receipt, which takes no room.
//
// Each row of jobs is a live job, and `at` is when it may be leased, by its due time or by the end of its lease. One index on (lane, at, id) finds both
// in their order; another holds the jobs that are leased, for Settle. A job that waits is in one index only.
//
// Note: a partial index for each state, on one table that keeps finished jobs too, was not taken. Each change of state is then a new version of a wide
// row, with a new entry in the index that knows events again and in the primary key. A heap-only update (HOT) is not to be had in any of
// these: claiming moves a job in the index that claims use.
//
// # How writes are shared
//
// Two goroutines of each handle store: each takes all calls that wait, writes them with one statement (unnest), and answers them after its commit;
// while one waits for the disk the other fills. One goroutine settles and one claims in the same way. Rows are written in the order of their keys, so
// that statements with events in common never wait for each other in a circle. A handle takes five connections.
//
// # How work is found
//
// A claim is one statement: FOR UPDATE SKIP LOCKED, in the order of the index, in a materialized part, so that it takes no more than its
// limit. A handle in which somebody waits looks every 5 to 20 milliseconds, and at once after an Enqueue or a Retry of its own.
//
// Note: there is no LISTEN/NOTIFY. A transaction that notifies takes one lock of the whole server for its commit, sync included
// (https://www.recall.ai/blog/postgres-listen-notify-does-not-scale, read November 2026), and every Enqueue would be one; polling finds a job in 10 ms on average.
//
// # Debouncing
//
// What is known of the updates of one resource is a row of rows. It is changed by triggers on jobs, in the transaction that changes the job which is the reason and by the
// server's clock; their conditions let jobs that are not debounced pass without a call. A statement about debounced jobs goes with one that locks their rows in order, in
// one round trip. An old version whose lease lapsed is ended by the next look at its lane: until then it is counted as waiting.
//
// # How it stays fast
//
// A claim walks over the entries of jobs that are gone until it comes to one that is there. Vacuum removes those, and a reader marks them, but neither while any
// transaction is open that may still see them: a forgotten session, a backup, a long report. A queue then becomes slower with every job
// (https://planetscale.com/blog/keeping-a-postgres-queue-healthy). A handle therefore remembers from where on jobs are left, and looks from the very beginning
// once a second at most, for those that came late, and less often if that takes long.
//
// Statements are prepared once for each connection, with a generic plan and with every way but the indexes switched off, because the statistics of a queue
// are always wrong. A test looks at the plans, made while the tables are empty and used when they are full.
//
// On a server of one's own, autovacuum_naptime belongs at a few seconds: its default of a minute is the turnover of a whole table here.
//
// # What is kept
//
// Everything, unless Options.Retention says for how long: every event with its payload, every attempt that failed with its time and reason, and whatever a person did with it by hand.
// With a retention, what was done or dropped longer ago is deleted in small transactions (retention.go), counted as expired, and known no more. Dead letters are kept until a person
// decides, and what is known of a resource whose updates are debounced, a hundred bytes or two, stays.
//
// # What breaks
//
// A connection that breaks fails the calls that are on it, since nobody knows what became of them; the next ones connect again. A claim whose caller has
// left is given back. The connection must be a session of its own: a pooler that shares sessions between transactions refuses its settings.
//
// # Limits
//
// Provider and event id together, and the lane, have at most 2,000 bytes, since they stand in an index; more is queue.ErrTooLarge. Any bytes may be in a text: those
// that the server refuses (the byte 0, broken UTF-8) are escaped.
//
// # Measured
//
// On two cores with PostgreSQL 15, November 2026, client and server together and beside much other load; ratios, because absolute figures belong to one machine. The
// benchmarks in this package repeat them.
//
// Note: 64 callers with 1.5 KB each store at about 0.7 times the rate of rows of an id and a body in a table without any index, by the same means, and 0.8 times
// that of one that knows its ids again (slices that alternate; 0.56 to 0.87 and 0.62 to 0.92 in seven runs).
//
// Note: with statements that are parsed and planned each time, that took 0.5 of 1.3 ms of the server's time for 32 events.
//
// Note: after 250,000 jobs under an open transaction a Receive of 500 took a fifth of what it took when each look began at the very beginning, which
// grows with every job; it was as fast as after 150,000. The table and its indexes had 66 MB then, and 19 MB after 150,000 jobs without such a transaction, where vacuum kept up.
//
// Note: with synchronous_commit=off it stored 1.1 to 1.6 times as much on a quiet disk, and two to three times on a busy one. That is what the weaker variant buys.
package postgres
