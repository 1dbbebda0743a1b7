package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Postgres is a PostgreSQL cluster of its own, which initdb makes at the first start. Its defaults survive a loss of power (fsync, full_page_writes and
// synchronous_commit are on: https://www.postgresql.org/docs/15/wal-reliability.html, read November 2026). Its superuser has a random password in the
// directory, because a superuser may run programs and every account of the machine reaches the loopback.
//
// PostgreSQL refuses to run as root. Under root it runs as the user postgres or nobody, who gets the data directory; directories above it that lie in
// os.TempDir and let nobody through are opened for passing through, not for reading.
//
// Its processes are not in the group of the first one, which is why a Server signals whatever it has started besides its group.
//
// A server that ends by SIGKILL leaves a System V shared memory segment of 56 bytes, which its next start removes: Terminate before Stop leaves none.
func Postgres() Kind {
	return Kind{
		Name:     "postgres",
		Variable: "FLOODPROOF_POSTGRES_URL",
		Install:  "apt-get install postgresql",
		Locate:   locatePostgres,
		Command:  postgresCommand,
		Address:  postgresAddress,
		Ready:    postgresReady,
	}
}

// locatePostgres looks where packages put the server: Debian, Red Hat and Homebrew keep each major version apart and out of the PATH.
func locatePostgres(ctx context.Context) (Binary, error) {
	binary, err := locate(ctx, []string{"postgres"}, "--version")
	if err == nil || !errors.Is(err, ErrMissing) {
		return binary, err
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/postgres", "/usr/pgsql-*/bin/postgres", "/opt/homebrew/opt/postgresql@*/bin/postgres", "/usr/local/opt/postgresql@*/bin/postgres"} {
		paths, _ := filepath.Glob(pattern) // it fails on a bad pattern only
		found = append(found, paths...)
	}
	if len(found) == 0 {
		return Binary{}, err
	}
	return locate(ctx, []string{slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(majorVersion(a), majorVersion(b)) })}, "--version")
}

// majorVersion is the number in a path like /usr/lib/postgresql/15/bin/postgres.
func majorVersion(path string) int {
	digits := strings.FieldsFunc(path, func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(digits[0]) // made of digits
	return n
}

func postgresCommand(ctx context.Context, in Instance) (*exec.Cmd, error) {
	data := filepath.Join(in.Dir, "data")
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err != nil {
		if err := initPostgres(ctx, in, data); err != nil {
			return nil, err
		}
	}
	if err := awaitPostgresOrphans(ctx, data); err != nil {
		return nil, fmt.Errorf("look for processes of an earlier server: %w", err)
	}
	settings := map[string]string{
		"listen_addresses": "127.0.0.1", "port": strconv.Itoa(in.Port), "unix_socket_directories": "",
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
		"dynamic_shared_memory_type": "mmap", // in the data directory, and gone with it
		"logging_collector":          "off",  // the log goes where the process's output goes
		"max_connections":            "200",
		"max_wal_size":               "2GB", // a checkpoint makes every page that is changed next a part of the log
		"autovacuum_naptime":         "5s",  // a queue turns over its table in a minute, which is the default
	}
	for name, value := range in.Settings {
		settings[name] = value
	}
	args := []string{"-D", data}
	for name, value := range settings {
		args = append(args, "-c", name+"="+value)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), in.Binary.Path, args...) // it outlives the context of its start
	return cmd, asServerUser(cmd, data)
}

// initPostgres makes the cluster. It is made beside its place and moved there when it is whole, so that a start that was interrupted is repeated.
func initPostgres(ctx context.Context, in Instance, data string) error {
	initdb, err := besidePostgres(in.Binary.Path, "initdb")
	if err != nil {
		return err
	}
	work := filepath.Join(in.Dir, "init")
	cluster, password := filepath.Join(work, "data"), rand.Text()
	err = errors.Join(os.RemoveAll(work), os.MkdirAll(cluster, 0o700),
		os.WriteFile(passwordPath(in.Dir), []byte(password), 0o600),
		os.WriteFile(passwordPath(work), []byte(password), 0o600)) // for initdb, which may be another user
	if err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	cmd := exec.CommandContext(ctx, initdb, "-D", cluster, "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "scram-sha-256", "--pwfile="+passwordPath(work))
	if err := asServerUser(cmd, work); err != nil {
		return err
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", initdb, err, said)
	}
	if err := errors.Join(os.Rename(cluster, data), syncDir(in.Dir), os.RemoveAll(work)); err != nil {
		return fmt.Errorf("make a cluster: %w", err)
	}
	return nil
}

// besidePostgres finds a program beside the server first: several versions may be installed.
func besidePostgres(server, name string) (string, error) {
	program, err := filepath.EvalSymlinks(server)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	found, err := exec.LookPath(filepath.Join(filepath.Dir(program), name))
	if err != nil {
		if found, err = exec.LookPath(name); err != nil {
			return "", fmt.Errorf("find %s beside %s or in the PATH: %w", name, program, err)
		}
	}
	return found, nil
}

func passwordPath(dir string) string { return filepath.Join(dir, "password") }

func postgresAddress(in Instance) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: "127.0.0.1:" + strconv.Itoa(in.Port), Path: "/postgres", RawQuery: "sslmode=disable"}
	if password, err := os.ReadFile(passwordPath(in.Dir)); err == nil {
		u.User = url.UserPassword("postgres", string(password))
	}
	return u.String()
}

// postgresReady begins a session, by hand, and ends it at the question for the password: a server that is starting up, recovering or shutting
// down answers with an error before it (https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.3, read November 2026).
func postgresReady(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("parse the address: %w", err)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	hello := binary.BigEndian.AppendUint32(nil, 3<<16) // protocol 3.0
	hello = append(hello, "user\x00"+u.User.Username()+"\x00database\x00"+strings.TrimPrefix(u.Path, "/")+"\x00\x00"...)
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(hello)+4)), hello...)); err != nil {
		return err
	}
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	if head[0] == 'R' {
		return nil
	}
	said, err := io.ReadAll(io.LimitReader(conn, int64(min(binary.BigEndian.Uint32(head[1:]), 4096))))
	if err != nil {
		return err
	}
	for field := range strings.SplitSeq(string(said), "\x00") {
		if message, ok := strings.CutPrefix(field, "M"); ok {
			return errors.New(message)
		}
	}
	return fmt.Errorf("unexpected answer %q", said)
}
