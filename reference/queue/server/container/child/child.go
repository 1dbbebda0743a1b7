// Package child is the helper of package container: a program that calls Main runs one container for the program that started it, and removes it when that has no use
// for it any more or is dead. It speaks to Docker through testcontainers-go.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"floodproof/reference/queue/server/container/wire"
)

// removeWithin is how long a container may take to be removed.
const removeWithin = 20 * time.Second

// Main is the helper, and returns its exit code: 0 after an orderly end, 1 if something failed, 2 for wrong arguments.
//
// Without arguments it takes orders from the standard input until that ends; see package wire. With "remove RUN" it removes all containers of a run, whoever
// made them. With "check" it prints the daemon's version and how containers reach the network, as one wire.Answer.
func Main(args []string) int {
	// The reaper of testcontainers-go is a container of its own, of an image that must be fetched, with the daemon's socket in it. The end of the standard input does its
	// work here.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "container:", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case len(args) == 0:
		err = serve(ctx, os.Stdin, os.Stdout)
	case len(args) == 1 && args[0] == "check":
		err = check(ctx, os.Stdout)
	case len(args) == 2 && args[0] == "remove":
		err = removeAll(ctx, args[1])
	default:
		_, _ = fmt.Fprintln(os.Stderr, "container: usage: without arguments, check, or remove RUN")
		return 2
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "container:", err)
		return 1
	}
	return 0
}

// serve carries out orders until the input ends, and removes the container.
func serve(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	orders := make(chan wire.Order)
	go func() {
		defer cancel() // also gives up what is being done: an image that is being fetched
		defer close(orders)
		for lines := bufio.NewReader(in); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var o wire.Order
			if json.Unmarshal(line, &o) != nil {
				return
			}
			select {
			case orders <- o:
			case <-ctx.Done():
				return
			}
		}
	}()
	e := new(engine)
	defer func() {
		background, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		err = errors.Join(err, e.remove(background))
	}()
	answers := json.NewEncoder(out)
	for o := range orders {
		a, err := e.do(ctx, o)
		a.N = o.N
		if err != nil {
			a.Error, a.NoDocker = err.Error(), errors.Is(err, errNoDocker)
		}
		if err := answers.Encode(a); err != nil {
			return nil // nobody listens any more
		}
	}
	return nil
}

// check prints what daemon there is.
func check(ctx context.Context, out io.Writer) error {
	a, err := new(engine).do(ctx, wire.Order{Verb: wire.Hello})
	if err != nil {
		a.Error, a.NoDocker = err.Error(), errors.Is(err, errNoDocker)
	}
	return json.NewEncoder(out).Encode(a)
}
