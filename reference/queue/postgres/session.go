package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// connectTimeout bounds the making of a connection.
	connectTimeout = 5 * time.Second
	// statementTimeout bounds each statement. A server that hangs for longer fails those who wait, as one that is gone does.
	statementTimeout = 30 * time.Second
	// idleCheck is how long a connection may lie idle until it is tried before it is used: one that broke meanwhile should not cost a call.
	idleCheck = time.Second
)

// session is a connection that one goroutine uses, and that is made again when it broke.
type session struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
	used   time.Time
}

// newConfig says how sessions are made. Those that are hot run the few statements of every job, and must never walk over a table.
//
// Statements are sent anew each time, with the types of their parameters from memory: the server prepares none. A prepared one changes to
// a generic plan after five uses (https://www.postgresql.org/docs/15/sql-prepare.html, read November 2026), which does not know how long its arrays are.
func newConfig(opts Options, hot bool) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(opts.URL)
	if err != nil {
		return nil, fmt.Errorf("parse the URL: %w", err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	set := func(name, value string) { config.RuntimeParams[name] = value }
	if config.RuntimeParams["application_name"] == "" {
		set("application_name", "floodproof")
	}
	// Said by us and not left to the role's or the database's defaults. Leases and settlements are written like events: the tokens of leases that
	// were forgotten would be given out twice, and the first owner could settle in the second one's name.
	set("synchronous_commit", "on")
	if opts.AsyncCommit {
		set("synchronous_commit", "off")
	}
	set("jit", "off")
	if hot {
		config.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
		set("plan_cache_mode", "force_generic_plan")
		// The statistics of a queue are always wrong: the table was empty, or full, when they were made.
		for _, name := range []string{"enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin"} {
			set(name, "off")
		}
	}
	return config, nil
}

// connect returns the connection, a new one if there is none that works.
func (s *session) connect(ctx context.Context) (*pgx.Conn, error) {
	if s.conn != nil && !s.conn.IsClosed() && time.Since(s.used) > idleCheck {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		if s.conn.Ping(ctx) != nil {
			_ = s.conn.Close(ctx) // it is of no use
		}
	}
	if s.conn == nil || s.conn.IsClosed() {
		if err := s.reconnect(ctx); err != nil {
			return nil, fmt.Errorf("connect to the server: %w", err)
		}
	}
	s.used = time.Now()
	return s.conn, nil
}

func (s *session) reconnect(ctx context.Context) error {
	s.settle()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.config)
	if err != nil {
		return err
	}
	s.conn = conn
	return nil
}

// settle waits until the driver has done with a connection that broke; it has a goroutine for that.
func (s *session) settle() {
	if s.conn != nil {
		<-s.conn.PgConn().CleanupDone()
		s.conn = nil
	}
}

// do runs statements within their time, on a connection that works.
func (s *session) do(use func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), statementTimeout)
	defer cancel()
	return s.doContext(ctx, use)
}

func (s *session) doContext(ctx context.Context, use func(context.Context, *pgx.Conn) error) error {
	conn, err := s.connect(ctx)
	if err != nil {
		return err
	}
	return use(ctx, conn)
}

func (s *session) close() error {
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTimeout)
	defer cancel()
	var err error
	if !s.conn.IsClosed() {
		err = s.conn.Close(ctx)
	}
	s.settle()
	return err
}
