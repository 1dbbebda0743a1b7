// Command floodproof plays webhook providers, breaks the pipeline meanwhile, and accounts for every event.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"floodproof/bench"
)

// Stamped by the Makefile.
var version, commit string

func main() {
	logging.Disable() // go-redis prints a line for each connection that fails; whoever calls it gets an error
	ctx, stop := interruptible(context.Background())
	program := bench.Program{
		Args: os.Args[1:], Arg0: os.Args[0],
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Version: version, Commit: commit,
	}
	status := program.Main(ctx)
	stop()
	os.Exit(status)
}

// interruptible ends the context at the first Ctrl-C or SIGTERM. The second ends the program at once: the guard process then
// cleans up what it started.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(bench.ExitInterrupted)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }
}
