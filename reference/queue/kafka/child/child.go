// Package child is kfake, the Kafka broker of franz-go that its authors test their client with, as a function: a program that calls Main is that broker, so that the
// queue on Kafka can be tried without Java. It is not Kafka, and what it survives says nothing about Kafka.
package child

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"floodproof/reference/queue/kafka/mark"
)

// Main runs one broker in the foreground until SIGTERM or an interrupt, and returns the exit code: 0 after either, 1 if it could not run, 2 for wrong arguments. It
// keeps its files in -dir and listens on -port of the loopback.
//
// -storage says how it keeps records: "sync" (the default) syncs each batch before it is acknowledged, "nosync" leaves that to the system as Kafka does by default,
// "memory" writes nothing.
func Main(args []string) int { return run(args, os.Stdout, os.Stderr) }

// settings are what the command line says.
type settings struct {
	dir, storage string
	port         int
	withParent   bool
	version      bool
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("kafka", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.dir, "dir", "", "directory of the records")
	flags.StringVar(&s.storage, "storage", "sync", "how records are kept: sync, nosync or memory")
	flags.IntVar(&s.port, "port", 0, "port on the loopback")
	flags.BoolVar(&s.withParent, "with_parent", false, "end when the process that started it is gone")
	flags.BoolVar(&s.version, "version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case s.version:
	case s.dir == "" || s.port < 1 || s.port > 65535:
		return s, errors.New("a broker needs -dir, and -port from 1 to 65535")
	case s.storage != "sync" && s.storage != "nosync" && s.storage != "memory":
		return s, fmt.Errorf("-storage is %q: use sync, nosync or memory", s.storage)
	}
	return s, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "kafka:", err)
		return 2
	}
	if s.version {
		_, _ = fmt.Fprintln(stdout, mark.Version())
		return 0
	}
	if err := serve(s, stderr); err != nil {
		_, _ = fmt.Fprintln(stderr, "kafka:", err)
		return 1
	}
	return 0
}

// serve runs the broker until a signal ends it.
func serve(s settings, stderr io.Writer) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts := []kfake.Opt{
		kfake.NumBrokers(1), kfake.Ports(s.port), kfake.ClusterID(mark.ClusterPrefix + s.storage),
		kfake.WithLogger(kfake.BasicLogger(stderr, kfake.LogLevelWarn)),
	}
	if s.storage != "memory" {
		opts = append(opts, kfake.DataDir(filepath.Join(s.dir, "records")))
	}
	if s.storage == "sync" {
		opts = append(opts, kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(opts...)
	if err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	if s.withParent {
		ctx, stop = withParent(ctx, os.Getppid, time.Second)
		defer stop()
	}
	<-ctx.Done()
	cluster.Close()
	return nil
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
