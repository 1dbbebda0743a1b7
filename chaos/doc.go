// Package chaos breaks things on purpose, at a stated time, and always heals them.
//
// A fault is a struct whose exported fields are its parameters and which has a name, a side and one method, Inject. It acts on what it is given: processes
// ([Fleet]), the recording downstream ([Downstream]), the queue's writes ([Holder]), and somebody who sends forgeries ([Flooder]). A fleet may have more: links between the parts ([Network]), a disk under the queue whose
// power can be cut ([Powered]), whose syncs can go wrong ([Syncs]) and that can be full ([Fillable]), a firewall between the parts ([Walled]), a server under the queue that can run out of something
// ([Exhaustible]), several nodes under it of which one leads ([Clustered]), and claims on its processes ([Claims]), so that nobody starts what somebody else still holds dead. A process may be one that can be paused ([Pauser]), asked to end
// ([Terminator]), told where to crash ([Crasher]) and what time it is ([Clocked]), and let run out of memory ([Glutton]). The [Timeline] plays the faults of a scenario and writes begin
// and end of each into the ledger; whether any event met a fault is judged from there, and a fault that nothing met counts as not shown, never as passed.
//
// # Adding a fault
//
// Take "worker.freeze", which stops a worker without killing it, as the example.
//
// 1. Say what it shows, in one sentence, before any code: "A worker that freezes past its lease must not settle the job that somebody else took over." A fault
// without such a sentence tests nothing that anybody could name. It becomes [Kind].Doc and is what `floodproof list faults` prints.
//
// 2. Write worker_freeze.go with the struct. Exported fields are parameters, plus what it acts on:
//
//	type WorkerFreeze struct {
//		Fleet Fleet
//	}
//
//	func (WorkerFreeze) Name() string      { return "worker.freeze" }
//	func (WorkerFreeze) Side() ledger.Side { return ledger.Worker }
//
// The side decides what the fault excuses, so it is the first thing that a reviewer looks at: faults of the worker and the downstream
// excuse no slow acknowledgement at all.
//
// 3. Write Inject. These are the rules, and each of them has a test in this package that can be copied:
//
//   - When Inject returns nil, the fault is in place; when it returns an error, everything is as before. Whatever was done up to the error is undone in Inject itself,
//     under a context from [context.WithoutCancel], because the usual reason for the error is that the context is done.
//   - Inject may take its time ([QueueHold] holds for a while before it kills). The fault's duration counts from the call of Inject.
//   - Heal undoes everything although parts of it fail, and joins the errors. It runs under its own context, also when the run was interrupted.
//   - Everything that waits, waits for the context too.
//   - A goroutine that Inject starts has ended when heal returns ([WorkerKillAtEffect]).
//   - Choices come from the generator that the fault was given, under the fault's own lock: the same seed chooses the same victims.
//   - What happens to a call of the downstream carries the injection's number ([Misbehaviour].Fault); this is the evidence that the fault was met.
//
// What not every machine or target has, a disk that can be full, a firewall, is an optional part of the fleet, an interface of one or two methods beside the fault that wants it. Where it is missing,
// the Kind's New wraps [ErrNotApplicable] and says what it would take ([DiskFull]); the run goes on, and its report says that this was not shown.
//
// 4. Add a function that returns the [Kind], with parameters, defaults and ranges, and add it to [Catalog]. A parameter stands beside the keys of a scenario's step and
// must not have the name of one (fault, segment, at, for, every, times). Scenario loader, `list faults` and the tests
// of this package find it there.
//
// 5. Write worker_freeze_test.go: the fault hits what it says, heals what it hit, undoes a half-done injection, and refuses parameters out of range.
//
// Note: faults are not plug-ins and register nowhere by themselves; a reader finds all of them by following Catalog. A probability per second
// in place of a timetable was rejected: a run must be repeatable, and its report must say what happened when.
package chaos
