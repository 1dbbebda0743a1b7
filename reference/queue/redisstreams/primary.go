package redisstreams

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// replicaTimeout is how long a change may take to come to the replicas until the call fails: less than the providers' patience, most of which is 5 s and more.
const replicaTimeout = 2 * time.Second

// send runs a script, and waits until enough replicas have what it changed. WAIT is about everything that the connection has seen, so that an event that was known already is on
// them too (https://redis.io/docs/latest/commands/wait/, read December 2026); within a script it would not wait.
//
// Leases and settlements wait as events do: a lease that the new primary does not know would be given out again with the same token.
func (q *Queue) send(ctx context.Context, s *redis.Script, args []any) (any, error) {
	keys := []string{q.prefix}
	if q.opts.Replicas == 0 {
		return s.Run(ctx, q.client, keys, args...).Result()
	}
	conn := q.client.Conn()
	answer, err := s.Run(ctx, conn, keys, args...).Result()
	if err == nil {
		err = awaitReplicas(ctx, conn, q.opts.Replicas)
	}
	return answer, errors.Join(err, conn.Close())
}

func awaitReplicas(ctx context.Context, conn *redis.Conn, want int) error {
	got, err := conn.Wait(ctx, want, replicaTimeout).Result()
	if err != nil {
		return fmt.Errorf("wait for the replicas: %w", err)
	}
	if got < int64(want) {
		return fmt.Errorf("%d of %d replicas have the change after %v", got, want, replicaTimeout)
	}
	return nil
}

// splitHosts takes the hosts out of an address, and returns the address with the first of them alone.
func splitHosts(address string) (string, []string) {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address, nil
	}
	end := len(rest)
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		end = i
	}
	begin := strings.LastIndexByte(rest[:end], '@') + 1 // behind user and password
	hosts := strings.Split(rest[begin:end], ",")
	return scheme + "://" + rest[:begin] + hosts[0] + rest[end:], hosts
}

// finder connects to whichever of some servers is the primary. It is safe for concurrent use.
type finder struct {
	hosts []string
	// last is the one that was it last.
	last    atomic.Int64
	connect func(ctx context.Context, network, address string) (net.Conn, error)
	user    string
	secret  string
}

func newFinder(o *redis.Options, hosts []string) *finder {
	return &finder{hosts: hosts, connect: redis.NewDialer(o), user: o.Username, secret: o.Password}
}

// dial is a redis.Options.Dialer. The address, which is that of the first, is not used.
func (f *finder) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	begin := f.last.Load()
	var errs []error
	for i := range int64(len(f.hosts)) {
		n := (begin + i) % int64(len(f.hosts))
		conn, err := f.try(ctx, network, f.hosts[n])
		if err == nil {
			f.last.CompareAndSwap(begin, n)
			return conn, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", f.hosts[n], err))
	}
	return nil, fmt.Errorf("find the primary: %w", errors.Join(errs...))
}

// try connects to one server, if it is the primary.
func (f *finder) try(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := f.connect(ctx, network, host)
	if err != nil {
		return nil, err
	}
	err = conn.SetDeadline(time.Now().Add(dialTimeout))
	if err == nil {
		err = f.ask(conn)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// ask asks for the role, by hand: the client has not begun with this connection.
func (f *finder) ask(conn net.Conn) error {
	question := command("INFO", "replication")
	if f.secret != "" {
		login := []string{"AUTH", f.secret}
		if f.user != "" {
			login = []string{"AUTH", f.user, f.secret}
		}
		question = command(login...) + question
	}
	if _, err := io.WriteString(conn, question); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	if f.secret != "" {
		if line, err := in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			return errors.Join(fmt.Errorf("log in: %s", strings.TrimSpace(line)), err)
		}
	}
	text, err := bulk(in)
	if err != nil {
		return err
	}
	if !strings.Contains(text, "role:master\r\n") {
		return errors.New("it is a replica")
	}
	if n := in.Buffered(); n > 0 {
		return fmt.Errorf("it said %d bytes more than it was asked for", n)
	}
	return nil
}

// command is a command as it is sent (https://redis.io/docs/latest/develop/reference/protocol-spec/, read December 2026).
func command(words ...string) string {
	text := "*" + strconv.Itoa(len(words)) + "\r\n"
	for _, w := range words {
		text += "$" + strconv.Itoa(len(w)) + "\r\n" + w + "\r\n"
	}
	return text
}

// maxInfo is far more than a server says about its replication.
const maxInfo = 1 << 20

// bulk reads one text.
func bulk(in *bufio.Reader) (string, error) {
	head, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	size, ok := strings.CutPrefix(strings.TrimSpace(head), "$")
	n, err := strconv.Atoi(size)
	if !ok || err != nil || n < 0 || n > maxInfo {
		return "", fmt.Errorf("ask for its role: %s", strings.TrimSpace(head))
	}
	text := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(in, text); err != nil {
		return "", err
	}
	return string(text[:n]), nil
}
