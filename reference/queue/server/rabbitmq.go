package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// rabbitNode is the server's name among Erlang nodes. Its data carries it, so it must not depend on a port; a name server of its own keeps servers apart. As root,
	// "localhost" would not be found.
	rabbitNode = "floodproof@127.0.0.1"
	// rabbitPatience bounds one question. A server that still starts may accept and say nothing.
	rabbitPatience = 5 * time.Second
)

// rabbitBeside starts the port mapper of Erlang in the foreground, in the server's process group, and then the server: it would start one itself, as a daemon that outlives it
// and belongs to nobody.
const rabbitBeside = `epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 &
until epmd -port "$ERL_EPMD_PORT" -names >/dev/null 2>&1; do sleep 0.1; done
exec "$0"`

// RabbitMQ is rabbitmq-server, a single node without plugins. Its defaults survive a loss of power, for quorum queues: those sync before they confirm
// (https://www.rabbitmq.com/docs/quorum-queues#data-safety, read November 2026). Settings are lines of its rabbitmq.conf ("disk_free_limit.absolute": "1GB"). It takes ten
// seconds and more to start.
func RabbitMQ() Kind {
	return Kind{
		Name:     "rabbitmq",
		Variable: "FLOODPROOF_RABBITMQ",
		Install:  "apt-get install --no-install-recommends rabbitmq-server",
		Locate:   func(context.Context) (Binary, error) { return locateRabbit() },
		Command:  rabbitCommand,
		Address:  func(in Instance) string { return "amqp://guest:guest@127.0.0.1:" + strconv.Itoa(in.Port) + "/" },
		Ready:    rabbitReady,
	}
}

// rabbitVersion is in the path of every installation: rabbitmq_server-3.10.8, or Homebrew's rabbitmq/3.13.1. The program itself has no option that tells it.
var rabbitVersion = regexp.MustCompile(`rabbitmq(?:_server)?[-/](\d+\.\d+\.\d+)`)

// locateRabbit finds the server's own script. The one that Debian has in the PATH insists on the user of the system's server.
func locateRabbit() (Binary, error) {
	if _, err := exec.LookPath("epmd"); err != nil {
		return Binary{}, fmt.Errorf("epmd, a part of Erlang: %w", ErrMissing)
	}
	for _, candidate := range []string{"/usr/lib/rabbitmq/bin/rabbitmq-server", "/opt/homebrew/sbin/rabbitmq-server", "/usr/local/sbin/rabbitmq-server", "rabbitmq-server"} {
		path, err := exec.LookPath(candidate)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return Binary{}, fmt.Errorf("find where %s is: %w", path, err)
		}
		version := "of unknown version"
		if found := rabbitVersion.FindStringSubmatch(filepath.ToSlash(real)); found != nil {
			version = found[1]
		}
		return Binary{Path: path, Version: "RabbitMQ " + version}, nil
	}
	return Binary{}, fmt.Errorf("rabbitmq-server: %w", ErrMissing)
}

func rabbitCommand(ctx context.Context, in Instance) (*exec.Cmd, error) {
	var ports [2]string // of the port mapper, and between Erlang nodes
	for i := range ports {
		port, err := FreePort(ctx)
		if err != nil {
			return nil, err
		}
		ports[i] = strconv.Itoa(port)
	}
	inside := func(name string) string { return filepath.Join(in.Dir, name) }
	for name, content := range map[string]string{"rabbitmq.conf": rabbitConf(in), "enabled_plugins": "[].\n"} {
		if err := os.WriteFile(inside(name), []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", "-c", rabbitBeside, in.Binary.Path) // it outlives the context of its start
	cmd.Dir = in.Dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RABBITMQ_") || strings.HasPrefix(v, "ERL_") }),
		"HOME="+in.Dir, // for the cookie
		"ERL_EPMD_PORT="+ports[0], "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_USE_LONGNAME=true", "RABBITMQ_NODENAME="+rabbitNode,
		"RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT="+strconv.Itoa(in.Port), "RABBITMQ_DIST_PORT="+ports[1],
		"RABBITMQ_CONF_ENV_FILE="+inside("none"), "RABBITMQ_CONFIG_FILE="+inside("rabbitmq.conf"), "RABBITMQ_ADVANCED_CONFIG_FILE="+inside("none.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+inside("enabled_plugins"), "RABBITMQ_GENERATED_CONFIG_DIR="+inside("generated"),
		"RABBITMQ_MNESIA_BASE="+inside("data"), "RABBITMQ_LOG_BASE="+inside("log"), "RABBITMQ_LOGS=-",
		// A small machine is shared with what is measured.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +SDio 4 +A 4",
	)
	return cmd, nil
}

func rabbitConf(in Instance) string {
	settings := map[string]string{
		"log.console": "true", "log.console.level": "warning", "log.file": "false", "num_acceptors.tcp": "2",
		// By default it is 512 MiB, which one node of a test does not need.
		"raft.wal_max_size_bytes": "67108864",
	}
	for name, value := range in.Settings {
		settings[name] = value
	}
	var lines []string
	for name, value := range settings {
		lines = append(lines, name+" = "+value+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// rabbitReady logs in and declares a queue that is gone with the connection: a server accepts connections before it knows its queues.
func rabbitReady(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, rabbitPatience)
	defer cancel()
	conn, err := amqp.DialConfig(address, amqp.Config{Dial: func(network, to string) (net.Conn, error) {
		var dialer net.Dialer
		raw, err := dialer.DialContext(ctx, network, to)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = raw.Close() }) // the client heeds no context; cancel comes after the last word
		return raw, nil
	}})
	if err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare("", false, true, true, false, nil)
	}
	if err := errors.Join(err, conn.Close()); err != nil {
		return errors.Join(err, ctx.Err())
	}
	return nil
}
