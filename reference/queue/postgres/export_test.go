package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Statements are those of every job's life, with parameters to plan them with.
func (q *Queue) Statements(ids []int64) map[string]Statement {
	bigints := "'{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]") + "}'"
	ones := "'{" + strings.TrimSuffix(strings.Repeat("1,", len(ids)), ",") + "}'"
	return map[string]Statement{
		"claim":  {SQL: q.sql.claim, Types: "text, timestamptz, bigint, bigint, bigint", Args: "'', '-infinity', 100, 4000000, 1000"},
		"peek":   {SQL: q.sql.peek, Types: "text, timestamptz", Args: "'', '-infinity'"},
		"settle": {SQL: q.sql.settle, Types: "bigint[], bigint[], smallint[], bigint[], text[]", Args: strings.Join([]string{bigints, ones, ones, ones, ones}, ", ")},
	}
}

// Statement is one with the types and values of its parameters, as SQL.
type Statement struct{ SQL, Types, Args string }

// ClaimFrom is the claim of a look that begins at an instant.
func (q *Queue) ClaimFrom(from string) Statement {
	s := q.Statements(nil)["claim"]
	s.Args = strings.Replace(s.Args, "-infinity", from, 1)
	return s
}

// Plan is the server's plan of a prepared statement, as a session of everyday work gets it.
func (q *Queue) Plan(ctx context.Context, statement Statement) (string, error) {
	return q.explain(ctx, "EXPLAIN", statement)
}

// Run runs a statement as Plan plans it, and tells what it touched.
func (q *Queue) Run(ctx context.Context, statement Statement) (string, error) {
	return q.explain(ctx, "EXPLAIN (ANALYZE, BUFFERS)", statement)
}

func (q *Queue) explain(ctx context.Context, explain string, statement Statement) (string, error) {
	config, err := newConfig(q.opts, true)
	if err != nil {
		return "", err
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	s := &session{config: config}
	defer func() { _ = s.close() }()
	conn, err := s.connect(ctx)
	if err != nil {
		return "", err
	}
	types, args := "", ""
	if statement.Types != "" {
		types, args = "("+statement.Types+")", "("+statement.Args+")"
	}
	if _, err := conn.Exec(ctx, "PREPARE it "+types+" AS "+inSchema(q.opts.Namespace, statement.SQL)); err != nil {
		return "", err
	}
	rows, err := conn.Query(ctx, explain+" EXECUTE it "+args)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// Waiting is how many calls stand before the goroutines that store.
func (q *Queue) Waiting() int { return len(q.enqueues) }

// Compact puts the counts together now.
func (q *Queue) Compact(ctx context.Context) error { return q.Exec(ctx, sqlCompact, 1000) }

// Exec runs a statement behind the queue's back; "$." is the queue's schema.
func (q *Queue) Exec(ctx context.Context, statement string, args ...any) error {
	return q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, inSchema(q.opts.Namespace, statement), args...)
		return err
	})
}

// Int asks for a number behind the queue's back.
func (q *Queue) Int(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, inSchema(q.opts.Namespace, query), args...).Scan(&n)
	})
	return n, err
}

// Escape, Unescape and Durability are tested by themselves.
var (
	Escape     = escape
	Unescape   = unescape
	Durability = durability
)

// Born is when an event was stored, as the server writes it.
func (q *Queue) Born(ctx context.Context, eventID string) string {
	var at string
	_ = q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, inSchema(q.opts.Namespace, "SELECT stored_at::text FROM $.events WHERE event_id = $1"), eventID).Scan(&at)
	})
	return at
}

// Sweep deletes what is old, as it happens now and then.
func (q *Queue) Sweep() error { return q.sweep() }
