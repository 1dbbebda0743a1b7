package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"floodproof/chaos"
)

// Exhaust implements chaos.Exhaustible, for single servers that the run started.
func (f *fleet) Exhaust(r chaos.Resource) (chaos.Exhaust, bool) {
	if f.broker == nil || f.broker.server == nil || f.broker.cluster != nil {
		return nil, false
	}
	type lack struct {
		kind     string
		resource chaos.Resource
	}
	exhaust, ok := map[lack]func(context.Context, string) (func(context.Context) error, error){
		{"redis", chaos.Memory}:         exhaustRedisMemory,
		{"redis", chaos.Connections}:    exhaustRedisConnections,
		{"postgres", chaos.Connections}: exhaustPostgresConnections,
	}[lack{f.broker.Name(), r}]
	return func(ctx context.Context) (func(context.Context) error, error) {
		return exhaust(ctx, f.broker.address)
	}, ok
}

// probeKey is the key by which is seen whether Redis takes a write.
const probeKey = "floodproof:probe"

// exhaustRedisMemory lowers maxmemory to a byte. With another policy than noeviction the server would throw the queue away instead, which is a fault of the installation that no
// pipeline survives; that is refused.
func exhaustRedisMemory(ctx context.Context, address string) (func(context.Context) error, error) {
	admin, err := redisAdmin(address)
	if err != nil {
		return nil, err
	}
	policy, err := admin.ConfigGet(ctx, "maxmemory-policy").Result()
	if err == nil && policy["maxmemory-policy"] != "noeviction" {
		err = fmt.Errorf("maxmemory-policy is %q: what is queued would be thrown away", policy["maxmemory-policy"])
	}
	if err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	setBack, err := setRedis(ctx, admin, "maxmemory", "1")
	if err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	undo := func(ctx context.Context) error { return errors.Join(setBack(ctx), admin.Close()) }
	if err := expectRefusal(admin.Set(ctx, probeKey, "x", time.Second).Err(), "OOM"); err != nil {
		return nil, errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	return undo, nil
}

// exhaustRedisConnections lowers maxclients to one, which is its own, and closes all others.
func exhaustRedisConnections(ctx context.Context, address string) (func(context.Context) error, error) {
	admin, err := redisAdmin(address)
	if err != nil {
		return nil, err
	}
	setBack, err := setRedis(ctx, admin, "maxclients", "1")
	if err != nil {
		return nil, errors.Join(err, admin.Close())
	}
	undo := func(ctx context.Context) error { return errors.Join(setBack(ctx), admin.Close()) }
	err = admin.ClientKillByFilter(ctx, "TYPE", "normal", "SKIPME", "yes").Err()
	if err == nil {
		err = expectRefusal(greetingOf(ctx, admin.Options().Addr), "max number of clients")
	}
	if err != nil {
		return nil, errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	return undo, nil
}

// greetingOf is what a server says to a new connection before it is asked anything, as an error. Redis says why it lets nobody in, and hangs up; to one that has
// asked meanwhile the kernel may say only that the connection is gone.
func greetingOf(ctx context.Context, address string) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetReadDeadline(time.Now().Add(greetingWithin)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil // it waits to be asked
	}
	return errors.Join(errors.New(strings.TrimSpace(line)), err)
}

// greetingWithin is far longer than a server takes to refuse a connection.
const greetingWithin = 2 * time.Second

// redisAdmin is one connection, which is kept: where the server lets nobody in, this one is in already.
func redisAdmin(address string) (*redis.Client, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, fmt.Errorf("parse the server's address: %w", err)
	}
	o.PoolSize, o.MaxRetries, o.DisableIdentity = 1, -1, true
	o.ConnMaxIdleTime, o.ConnMaxLifetime = -1, -1
	return redis.NewClient(o), nil
}

// setRedis sets a setting and returns what sets it back.
func setRedis(ctx context.Context, admin *redis.Client, name, value string) (func(context.Context) error, error) {
	before, err := admin.ConfigGet(ctx, name).Result()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	setBack := func(ctx context.Context) error {
		if err := admin.ConfigSet(ctx, name, before[name]).Err(); err != nil {
			return fmt.Errorf("set %s back: %w", name, err)
		}
		return nil
	}
	if err := admin.ConfigSet(ctx, name, value).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("set %s: %w", name, err), setBack(context.WithoutCancel(ctx)))
	}
	return setBack, nil
}

// expectRefusal is nil for an error that says why.
func expectRefusal(err error, why string) error {
	switch {
	case err == nil:
		return errors.New("the server refuses nothing")
	case !strings.Contains(err.Error(), why):
		return err
	}
	return nil
}

// hogs are connections that are held so that nobody else gets one.
type hogs struct {
	address string
	admin   *pgx.Conn

	mu   sync.Mutex
	held []*pgx.Conn
}

// exhaustPostgresConnections opens connections until the server refuses, closes those of everybody else, and takes each place that becomes free.
func exhaustPostgresConnections(ctx context.Context, address string) (func(context.Context) error, error) {
	admin, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	h := &hogs{address: address, admin: admin}
	life, lift := context.WithCancel(context.WithoutCancel(ctx))
	over := make(chan struct{})
	undo := func(ctx context.Context) error {
		lift()
		<-over
		h.close(ctx)
		return nil
	}
	err = h.fill(ctx)
	if err == nil {
		_, err = admin.Exec(ctx, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> $1 AND pid <> pg_backend_pid()", hogName)
	}
	if err == nil {
		err = h.fill(ctx)
	}
	if err != nil {
		close(over)
		return nil, errors.Join(err, undo(context.WithoutCancel(ctx)))
	}
	go func() {
		defer close(over)
		h.keep(life)
	}()
	return undo, nil
}

const (
	// hogName tells the hogs from those whom they keep out.
	hogName = "floodproof-hog"
	// mostHogs ends the search for a limit that is not there.
	mostHogs = 2000
	// hogEvery is how often a place that became free is looked for.
	hogEvery = 50 * time.Millisecond
)

// fill opens connections until the server refuses one.
func (h *hogs) fill(ctx context.Context) error {
	config, err := pgx.ParseConfig(h.address)
	if err != nil {
		return fmt.Errorf("parse the server's address: %w", err)
	}
	config.RuntimeParams["application_name"] = hogName
	for {
		conn, err := pgx.ConnectConfig(ctx, config)
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == tooManyConnections {
			return nil
		}
		if err != nil {
			return fmt.Errorf("open a connection: %w", err)
		}
		h.mu.Lock()
		h.held = append(h.held, conn)
		n := len(h.held)
		h.mu.Unlock()
		if n > mostHogs {
			return fmt.Errorf("the server takes more than %d connections", mostHogs)
		}
	}
}

// tooManyConnections is a code of https://www.postgresql.org/docs/15/errcodes-appendix.html (read November 2026).
const tooManyConnections = "53300"

// keep takes what becomes free until ctx ends. A server that is gone has no places to take.
func (h *hogs) keep(ctx context.Context) {
	tick := time.NewTicker(hogEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_ = h.fill(ctx) // the next tick tries again
		}
	}
}

// close lets everybody in again. A connection is closed whatever becomes of its farewell.
func (h *hogs) close(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var wg sync.WaitGroup
	for _, conn := range append(h.held, h.admin) {
		wg.Go(func() { _ = conn.Close(ctx) })
	}
	wg.Wait()
	h.held = nil
}

var _ chaos.Exhaustible = (*fleet)(nil)
