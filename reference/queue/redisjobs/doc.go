// Package redisjobs is a queue on asynq (https://github.com/hibiken/asynq), a library of job queues in Redis, and of those in Go the one that comes closest to BullMQ: it carries, and a queue in
// SQLite stores (package inbox, which says why nothing is lost by that).
//
// # What is asked of asynq
//
// A task is published, and a handler holds it until it is acknowledged: then it returns nil, and asynq deletes the task. Whatever waits while one is published is the next task
// (package bundle), as asynq has no call for several. Everything else that a queue needs is the store's, because what asynq has of it loses events or comes too late. As of v0.26.0:
//
//   - The option Unique is never used. Its lock is taken before the id of the task is looked at, and stays when that is taken: what is published then is neither stored nor, for
//     as long as the lock lives, accepted again. Events are known by the store.
//   - A task that fails too often, or whose worker dies too often (a crash counts as a failure), goes to an archive of 10,000 tasks and 90 days, which is trimmed without a word. Our tasks have as many
//     tries as a number can say, and no failure is counted (Config.IsFailure), so that nothing is ever archived. Dead letters are the store's.
//   - A task whose worker died is found by a pass that runs once a minute, for leases that ended 30 seconds ago, after 30 seconds of lease: 60 to 120 seconds. Neither can be
//     configured. Each transport that fetches looks itself, once a second, for leases that were not prolonged for 12 seconds, which a worker that lives does every 5. By Redis's
//     clock; a worker whose clock is more than 12 seconds behind shares its tasks with others, which the store does not mind.
//   - Delays are looked at every 5 seconds, to the second. None is used.
//   - While Redis is away, its loop asks again without a pause, and burns a processor. The connection that it is given makes it wait (hook in worker.go).
//   - An acknowledgement is not confirmed: the handler has returned, and asynq tries on its own. If it fails, it is tried again with a context that has ended by then (markAsDone in
//     processor.go cancels the one that its syncer uses), and so never succeeds. Ack looks whether the task is gone, and deletes it itself if it is not.
//
// # Durability
//
// It is that of the Redis server, which is asked for its settings when the transport is opened: with appendonly and appendfsync always, a loss of power; with appendfsync no, the end
// of processes; with everysec, or without the file, nothing. A server that may evict (maxmemory-policy other than noeviction) is refused, as Redis would throw away tasks when
// its memory is full, and so is a replica.
//
// # Notes
//
// Note: asynq writes the payloads of the tasks in hand to Redis once more, every five seconds, for its monitoring (WriteServerState). They are in hand for milliseconds.
//
// Note: it polls. An idle worker asks 40 times a second (pollEvery); its own default is once a second, which would be the latency of an event.
//
// Note: BullMQ itself is for Node.js, and so is not a package here. Its pipelines can be judged as a stranger's, behind a URL.
package redisjobs
