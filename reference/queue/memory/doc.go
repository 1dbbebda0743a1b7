// Package memory is a queue in the memory of another process, and nowhere else. It is there to be measured against, in two ways.
//
// As a ceiling: it does all that a queue of this project does (lanes, leases with fencing tokens, retries, dead letters, debouncing, deduplication, steps) at the price of
// a round trip over the loopback and nothing for storage. What a backend is slower than this, its durability costs; what this is slower than wanted, the harness does.
//
// As a negative control: it acknowledges what the next SIGKILL takes away, and then knows no event again either, so that a provider's second delivery is
// a new event. A suite that kills brokers and finds nothing wrong with this one finds nothing.
//
// Nobody should run it for events that matter. It says so: it claims durability "none".
//
// # How it is built
//
// Package state is the queue itself, without a clock or a lock, and package front the checks and the closing around it; the queue on Kafka is made of the same two. Package child is the broker, a process that is the program itself, executed again: it adds both,
// and lets a Receive wait. Package wire is what goes over the connection. This package is the client.
//
// Calls are pipelined over one connection for each handle: what many callers ask while one write is under way goes with the next, which is all the group commit
// that memory needs.
//
// # What happens when the broker goes
//
// Calls under way fail, and the next one makes a connection to whoever listens at the address then. A broker that was started again begins with nothing. Its leases have
// higher tokens than those of the one before, so that a worker that comes back late settles nothing of the new one.
//
// Note: a map in the process of the pipeline would be faster still. But then the receiver and the worker could not be processes of their own, and killing the one that
// holds the queue would kill what measures the loss.
//
// # What is kept
//
// Of what is finished the identity alone, some 150 bytes, so that it is known if it comes again: this queue has nothing but memory. Options.Retention says for how long all of it is
// kept nevertheless, to be looked up, listed and replayed: some 400 bytes besides its payload. After that it is forgotten whole, is counted as expired, and would be a new event. The
// first handle that has a retention makes the broker keep what is finished, for all handles of the namespace; each handle that has one tells a new broker so before anything else,
// and has it forget what is old from time to time. Without a retention [Queue.Event], [Queue.Events] and [Queue.Replay] know what is not finished, and the dead letters, which nobody
// but a person ever removes.
//
// Note: a broker keeps the version of each resource that is debounced as long as it runs.
package memory
