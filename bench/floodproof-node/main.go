// Command floodproof-node is one process of the reference pipeline, a receiver or a worker, as small as it can be. It is started by floodproof, which does the same itself
// where this program does not lie beside it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9/logging"

	"floodproof/bench/node"
)

// Stamped by the Makefile.
var version, commit string

func main() {
	if len(os.Args) < 2 || os.Args[1] == node.VersionRole {
		fmt.Println(node.Stamp(version, commit)) //nolint:forbidigo // the answer
		return
	}
	logging.Disable() // go-redis prints a line for each connection that fails; whoever calls it gets an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	process := node.Process{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	err := process.Run(ctx, os.Args[1], os.Args[2:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "floodproof-node: error: %v\n", err)
		os.Exit(2)
	}
}
