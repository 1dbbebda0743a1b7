// Package harness runs a plan: it starts the pipeline, plays the traffic, breaks what the scenario says, drains, and judges.
//
// It is also the entry for Go programs that want floodproof inside their own tests:
//
//	verdict, err := harness.Run(ctx, plan)
//
// # Processes
//
// The runner is one process: scheduler, sink, fault timeline, ledger. Receivers and workers are processes of their own, so that SIGKILL
// is a real SIGKILL. Each child runs in its own process group and holds the read end of a pipe whose write end only the runner has: when the runner dies, by
// whatever means, the child sees the end of the pipe and exits. A guard process does the same for what cannot watch a pipe, and removes the working
// directory.
//
// # Order at the end
//
// Stop the load, heal every fault, drain, stop the children, close the ledger, judge the file, write the report. An interrupt skips the drain and
// nothing else.
package harness
