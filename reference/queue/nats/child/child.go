// Package child is a NATS server with JetStream as a function: a program that calls Main is that server, so that a queue on NATS needs no binary but the
// program's own. It runs as a process of its own, because what shall be killed must not take the killer along.
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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Version names the server that is built in.
const Version = "nats-server " + server.VERSION

// Main runs a server in the foreground until SIGTERM or an interrupt, and returns the exit code: 0 after either, 1 if it could not run, 2 for wrong
// arguments. It keeps JetStream's files in -dir and listens on -port of the loopback, nowhere else.
//
// The defaults survive a loss of power: -sync_interval is "always", so that what JetStream acknowledges is synced before (its own default is two
// minutes, https://docs.nats.io/running-a-nats-service/configuration, read November 2026).
func Main(args []string) int { return run(args, os.Stdout, os.Stderr) }

// settings are what the command line says.
type settings struct {
	dir          string
	port         int
	syncInterval string
	maxPayload   int
	batchMsgs    int
	withParent   bool
	version      bool
	name         string
	clusterPort  int
	routes       string
}

func parse(args []string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("nats", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.dir, "dir", "", "directory of JetStream's files")
	flags.IntVar(&s.port, "port", 0, "port on the loopback")
	flags.StringVar(&s.syncInterval, "sync_interval", "always", `when files are synced: "always" or a duration`)
	flags.IntVar(&s.maxPayload, "max_payload", 8<<20, "largest message in bytes")
	flags.IntVar(&s.batchMsgs, "batch_max_msgs", 8192, "most messages of one atomic batch")
	flags.BoolVar(&s.withParent, "with_parent", false, "end when the process that started it is gone")
	flags.StringVar(&s.name, "name", "floodproof", "name of this server among those of its cluster")
	flags.IntVar(&s.clusterPort, "cluster_port", 0, "port on the loopback for the other servers of a cluster; 0 is a server alone")
	flags.StringVar(&s.routes, "routes", "", "host:port of each server of the cluster, separated by commas")
	flags.BoolVar(&s.version, "version", false, "print the version and end")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.version {
		return s, nil
	}
	if s.dir == "" || s.port < 1 {
		return s, errors.New("a server needs -dir and -port")
	}
	if (s.clusterPort > 0) != (s.routes != "") {
		return s, errors.New("a cluster needs both -cluster_port and -routes")
	}
	if s.syncInterval != "always" {
		if d, err := time.ParseDuration(s.syncInterval); err != nil || d <= 0 {
			return s, fmt.Errorf("-sync_interval is %q: use always or a duration", s.syncInterval)
		}
	}
	return s, nil
}

func run(args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "nats:", err)
		return 2
	}
	if s.version {
		_, _ = fmt.Fprintln(stdout, Version)
		return 0
	}
	if err := serve(s); err != nil {
		_, _ = fmt.Fprintln(stderr, "nats:", err)
		return 1
	}
	return 0
}

// serve runs the server until a signal ends it.
func serve(s settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := options(s)
	if err != nil {
		return err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("prepare the server: %w", err)
	}
	srv.ConfigureLogger()
	go srv.Start()
	if s.withParent {
		ctx, stop = withParent(ctx, os.Getppid, time.Second)
		defer stop()
	}
	<-ctx.Done()
	srv.Shutdown()
	srv.WaitForShutdown()
	return nil
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

// options goes through a configuration file, which stays in the directory for a reader, because that is where the server's own defaults and checks are.
func options(s settings) (*server.Options, error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the server's directory: %w", err)
	}
	path := filepath.Join(s.dir, "nats.conf")
	if err := os.WriteFile(path, []byte(config(s)), 0o644); err != nil {
		return nil, fmt.Errorf("write the server's configuration: %w", err)
	}
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the server's configuration: %w", err)
	}
	opts.NoSigs = true // serve listens for them
	return opts, nil
}

// config lets the users of the one account ask for the JetStream settings in force ($SYS.REQ.SERVER.PING.JSZ), which otherwise only the system account
// may: a queue that cannot read them must not claim what they decide.
func config(s settings) string {
	return fmt.Sprintf(`listen: "127.0.0.1:%d"
server_name: %s
max_payload: %d
max_pending: 256MB
write_deadline: "30s"
jetstream {
  store_dir: %s
  sync_interval: %s
  limits { batch { max_msgs: %d } }
}
accounts {
  SYS { exports: [{service: "$SYS.REQ.SERVER.PING.JSZ", accounts: [APP]}] }
  APP {
    jetstream: enabled
    users: [{user: app, password: app}]
    imports: [{service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ"}}]
  }
}
system_account: SYS
no_auth_user: app
`, s.port, strconv.Quote(s.name), s.maxPayload, strconv.Quote(filepath.ToSlash(s.dir)), strconv.Quote(s.syncInterval), s.batchMsgs) + cluster(s)
}

// cluster is the part about the other servers, none for a server alone. Streams choose their replicas themselves.
func cluster(s settings) string {
	if s.clusterPort == 0 {
		return ""
	}
	var routes []string
	for route := range strings.SplitSeq(s.routes, ",") {
		routes = append(routes, strconv.Quote("nats://"+route))
	}
	return fmt.Sprintf(`cluster {
  name: floodproof
  listen: "127.0.0.1:%d"
  routes: [%s]
}
`, s.clusterPort, strings.Join(routes, ", "))
}
