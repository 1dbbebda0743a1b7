// Package child is a small server that speaks the protocol of Amazon SQS, as a function: a program that calls Main is that server, so that the queue on SQS can be tried, and
// broken, without an account. It is an emulator of ours and not Amazon SQS: what it survives, and how fast it is, says nothing about Amazon.
//
// # What it does
//
// The AWS JSON protocol 1.0, over plain HTTP on the loopback: CreateQueue, GetQueueUrl, ListQueues, GetQueueAttributes, SetQueueAttributes, DeleteQueue, PurgeQueue, SendMessage,
// ReceiveMessage, DeleteMessage and ChangeMessageVisibility, and their batches. Standard queues, and FIFO queues with groups in order and deduplication for five minutes, also
// after a message was deleted and after a restart. It checks no signatures. It has no dead-letter queues, policies, tags, encryption or fair queues, and refuses what asks for them.
//
// # What it keeps
//
// A message, a deletion and a queue are in a log, which is synced before the answer, once for all requests that wait. Who has received what is in memory: after a restart
// all messages are visible, and no receipt handle of before counts. A receipt handle is a fencing token: only the last one of a message deletes it.
//
// Note: real queues forget messages that are older than MessageRetentionPeriod. This one keeps them for ever, as to lose events silently is the last thing to want of it.
//
// Note: the sqlite queue of this module would have been a store too. It knows events for ever, which a queue of transport does not need, and no order within groups, and a log
// with what is not deleted in memory is less than what would have had to be built on top.
package child

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// Version names the server.
func Version() string { return "floodproof SQS emulator 1 (" + runtime.Version() + ")" }

// Main runs a server in the foreground until SIGTERM or an interrupt, and returns the exit code: 0 after either, 1 if it could not run, 2 for wrong arguments. It keeps its
// files in -dir and listens on -port of the loopback.
//
// -storage says how it keeps messages: "sync" (the default) syncs them before it answers, "nosync" leaves that to the system.
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
	flags := flag.NewFlagSet("sqs", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.dir, "dir", "", "directory of the messages")
	flags.StringVar(&s.storage, "storage", StorageSync, "how messages are kept: sync or nosync")
	flags.IntVar(&s.port, "port", 0, "port on the loopback")
	flags.BoolVar(&s.withParent, "with_parent", false, "end when the process that started it is gone")
	flags.BoolVar(&s.version, "version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	switch {
	case s.version:
	case s.dir == "" || s.port < 1 || s.port > 65535:
		return s, errors.New("a server needs -dir, and -port from 1 to 65535")
	case s.storage != StorageSync && s.storage != StorageNosync:
		return s, fmt.Errorf("-storage is %q: use sync or nosync", s.storage)
	}
	return s, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "sqs:", err)
		return 2
	}
	if s.version {
		_, _ = fmt.Fprintln(stdout, Version())
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if s.withParent {
		ctx, stop = withParent(ctx, os.Getppid, time.Second)
		defer stop()
	}
	broken := func(err error) {
		_, _ = fmt.Fprintln(stderr, "sqs: nothing can be stored any more:", err)
		os.Exit(1)
	}
	if err := serve(ctx, s, broken); err != nil {
		_, _ = fmt.Fprintln(stderr, "sqs:", err)
		return 1
	}
	return 0
}

// serve runs the server until its context ends.
func serve(ctx context.Context, s settings, broken func(error)) (err error) {
	dir := filepath.Join(s.dir, "messages")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	storage := s.storage
	if memory, err := inMemory(dir); err != nil {
		return fmt.Errorf("find the file system of %s: %w", dir, err)
	} else if memory {
		storage = StorageMemory
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	st, err := openStore(dir, s.storage == StorageSync, time.Now)
	if err != nil {
		return err
	}
	st.broken = broken
	defer func() { err = errors.Join(err, st.close()) }()
	host := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port))
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", host)
	if err != nil {
		return err
	}
	return listen(ctx, l, &server{store: st, storage: storage, host: host})
}

// listen answers until its context ends, and then finishes what is under way. Those who wait for a message get none.
func listen(ctx context.Context, l net.Listener, s *server) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	all, ended := errgroup.WithContext(ctx)
	all.Go(func() error {
		if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	all.Go(func() error {
		<-ended.Done()
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		return errors.Join(h.Shutdown(patience), h.Close())
	})
	return all.Wait()
}

// withParent ends the context when the process has another parent than at first, which is how Unix tells an orphan. A test that dies without stopping its server would
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
