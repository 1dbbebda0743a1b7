package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Redis is redis-server or valkey-server. Its defaults survive a loss of power: everything is in the append-only file, which is synced before a reply
// (appendfsync always), also while it is rewritten, and nothing is evicted (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/, read November 2026).
func Redis() Kind {
	return Kind{
		Name:     "redis",
		Variable: "FLOODPROOF_REDIS_URL",
		Install:  "apt-get install redis-server",
		Locate: func(ctx context.Context) (Binary, error) {
			return locate(ctx, []string{"redis-server", "valkey-server"}, "--version")
		},
		Command: redisCommand,
		Address: func(in Instance) string { return "redis://127.0.0.1:" + strconv.Itoa(in.Port) },
		Ready:   redisReady,
		Repair:  redisRepair,
	}
}

// redisRepair runs redis-check-aof, which cuts the append-only file where it is damaged first. Redis loads a file that only lacks its end (aof-load-truncated), but refuses one
// with a hole, which a loss of power leaves where not everything was synced, and names the program itself
// (https://redis.io/docs/latest/operate/oss_and_stack/management/persistence/#what-should-i-do-if-my-aof-gets-corrupted, read November 2026).
func redisRepair(ctx context.Context, in Instance, said string) (string, error) {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "-check-aof --fix") {
		return "", ErrSound
	}
	var files []string
	for _, pattern := range []string{filepath.Join("appendonlydir", "*.manifest"), "appendonly.aof"} { // since Redis 7.0, and before
		found, err := filepath.Glob(filepath.Join(in.Dir, pattern))
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	if len(files) != 1 {
		return "", fmt.Errorf("find the append-only file in %s: got %q", in.Dir, files)
	}
	program, err := checkAOF(in.Binary.Path)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, "--fix", files[0])
	cmd.Stdin = strings.NewReader("y\n") // it asks whether to go on
	printed, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --fix: %w\n%s", program, err, printed)
	}
	return string(printed), nil
}

// checkAOF finds the program beside the server, or in the PATH.
func checkAOF(binary string) (string, error) {
	name := strings.Replace(filepath.Base(binary), "-server", "-check-aof", 1)
	for _, candidate := range []string{filepath.Join(filepath.Dir(binary), name), name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is neither beside %s nor in the PATH", name, binary)
}

func redisCommand(ctx context.Context, in Instance) (*exec.Cmd, error) {
	settings := map[string]string{
		"port": strconv.Itoa(in.Port), "bind": "127.0.0.1", "dir": in.Dir, "daemonize": "no", "save": "",
		"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "aof-load-truncated": "yes",
		"maxmemory-policy": "noeviction",
	}
	for name, value := range in.Settings {
		settings[name] = value
	}
	var args []string
	for name, value := range settings {
		args = append(args, "--"+name, value)
	}
	return exec.CommandContext(context.WithoutCancel(ctx), in.Binary.Path, args...), nil // it outlives the context of its start
}

// redisReady sends PING, by hand: this package needs no client. A server that still loads its file answers with an error.
func redisReady(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", strings.TrimPrefix(address, "redis://"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.TrimSpace(line) != "+PONG" {
		return errors.New(strings.TrimSpace(line))
	}
	return nil
}

// locate finds the first of some programs, and what it says about its version. Debian keeps some out of the PATH of ordinary users.
func locate(ctx context.Context, names []string, versionFlag string) (Binary, error) {
	for _, name := range names {
		for _, candidate := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
			path, err := exec.LookPath(candidate)
			if err != nil {
				continue
			}
			said, err := exec.CommandContext(ctx, path, versionFlag).CombinedOutput()
			if err != nil {
				return Binary{}, fmt.Errorf("%s %s: %w", path, versionFlag, err)
			}
			line, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
			return Binary{Path: path, Version: line}, nil
		}
	}
	slices.Sort(names)
	return Binary{}, fmt.Errorf("%s: %w", strings.Join(names, ", "), ErrMissing)
}
