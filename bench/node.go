package bench

import (
	"context"
	"slices"
	"strings"

	"floodproof/bench/harness"
	"floodproof/bench/node"
	"floodproof/chaos/cutfs"
	kafkachild "floodproof/reference/queue/kafka/child"
	memorychild "floodproof/reference/queue/memory/child"
	natschild "floodproof/reference/queue/nats/child"
	sqschild "floodproof/reference/queue/sqs/child"
)

// nodeVerb runs one process of a run: of the pipeline, a server that is built in, the guard.
func nodeVerb(ctx context.Context, p *Program, args []string) (int, error) {
	roles := "roles: " + strings.Join(append(node.Roles(), "guard", "nats", "kafka", "memory", "sqs", "cutfs"), ", ")
	if len(args) == 0 {
		return ExitUsage, usagef(roles, "node: no role given")
	}
	switch args[0] {
	case "guard":
		return ExitPass, harness.Guard(p.Stdin)
	case "nats": // servers that are built in
		return natschild.Main(args[1:]), nil
	case "kafka":
		return kafkachild.Main(args[1:]), nil
	case "memory":
		return memorychild.Main(args[1:]), nil
	case "sqs":
		return sqschild.Main(args[1:]), nil
	case "cutfs": // the file system whose power is cut
		return ExitPass, cutfs.ServeStdin(ctx)
	}
	if !slices.Contains(node.Roles(), args[0]) {
		return ExitUsage, usagef(roles, "node: unknown role %q", args[0])
	}
	process := node.Process{Stdin: p.Stdin, Stdout: p.Stdout, Stderr: p.Stderr, Parts: p.parts}
	return ExitPass, process.Run(ctx, args[0], args[1:])
}
