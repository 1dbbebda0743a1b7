// Package child is the broker of package memory as a function: a program that calls Main is that broker. It runs as a process of its own, because what shall be killed
// must not take the killer along.
package child

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// Version names the broker.
func Version() string { return "floodproof memory broker 2 (" + runtime.Version() + ")" }

// Main runs a broker in the foreground until SIGTERM or an interrupt, and returns the exit code: 0 after either, 1 if it could not run, 2 for wrong arguments. It
// listens on -port of the loopback, nowhere else, writes no file, and whatever it holds is gone with it.
func Main(args []string) int { return run(args, os.Stdout, os.Stderr) }

// settings are what the command line says.
type settings struct {
	port       int
	withParent bool
	version    bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("memory", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&s.port, "port", 0, "port on the loopback")
	flags.BoolVar(&s.withParent, "with_parent", false, "end when the process that started it is gone")
	flags.BoolVar(&s.version, "version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if !s.version && (s.port < 1 || s.port > 65535) {
		return s, errors.New("a broker needs -port, from 1 to 65535")
	}
	return s, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "memory:", err)
		return 2
	}
	if s.version {
		_, _ = fmt.Fprintln(stdout, Version())
		return 0
	}
	if err := serve(s); err != nil {
		_, _ = fmt.Fprintln(stderr, "memory:", err)
		return 1
	}
	return 0
}

// serve runs the broker until a signal ends it.
func serve(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// All that is ever stored stays reachable: to look through it less often costs memory, which is what this broker has to give.
	debug.SetGCPercent(400)
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)))
	if err != nil {
		return err
	}
	if s.withParent {
		ctx, stop = withParent(ctx, os.Getppid, time.Second)
		defer stop()
	}
	return newBroker(time.Now).serve(ctx, l)
}

// withParent ends the context when the process has another parent than at first, which is how Unix tells an orphan. A test that dies without stopping its broker would
// leave it behind otherwise.
func withParent(ctx context.Context, parent func() int, every time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	first, ticker := parent(), time.NewTicker(every)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if parent() != first {
					cancel()
				}
			}
		}
	}()
	return ctx, cancel
}
