package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"floodproof/reference/queue"
)

const (
	// sqlLimits makes the table of limits, which only a queue has that ever used one. It is unlogged: nothing of it is written ahead or synced, and after a crash of the server it is
	// empty, so that every limit begins anew.
	sqlLimits = `CREATE UNLOGGED TABLE IF NOT EXISTS $.limits (
	name    text COLLATE "C" PRIMARY KEY,
	free_at timestamptz NOT NULL -- when the limit is as if nobody had used it
) WITH (fillfactor = 10)`

	// sqlTake takes turns that last so many microseconds together, and returns for how long the limit will be in use. The clock is read when the row is locked.
	sqlTake = `INSERT INTO $.limits AS l (name, free_at) VALUES ($1, clock_timestamp() + $2 * interval '1 microsecond')
	ON CONFLICT (name) DO UPDATE SET free_at = greatest(l.free_at, clock_timestamp()) + $2 * interval '1 microsecond'
	RETURNING (extract(epoch FROM free_at - clock_timestamp()) * 1000000)::float8`

	undefinedTable = "42P01"
)

// Take implements queue.Limiter, by the server's clock.
func (q *Queue) Take(ctx context.Context, limit queue.Limit, n int) (time.Duration, error) {
	if err := limit.Check(); err != nil {
		return 0, err
	}
	if err := q.begin(); err != nil {
		return 0, err
	}
	defer q.calls.Done()
	every := float64(limit.Every()) / float64(time.Microsecond)
	var used float64
	err := q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		take := func() error {
			return conn.QueryRow(ctx, inSchema(q.opts.Namespace, sqlTake), escape(limit.Name), float64(n)*every).Scan(&used)
		}
		err := take()
		if missing, ok := errors.AsType[*pgconn.PgError](err); ok && missing.Code == undefinedTable {
			if err := q.createLimits(ctx, conn); err != nil {
				return err
			}
			err = take()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("take a turn of limit %q: %w", limit.Name, err)
	}
	return time.Duration(max(0, used-float64(limit.Burst)*every) * float64(time.Microsecond)), nil
}

// createLimits makes the table, under the lock of all that make something.
func (q *Queue) createLimits(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('floodproof ' || $1, 0))", q.opts.Namespace); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, inSchema(q.opts.Namespace, sqlLimits), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

var _ queue.Limiter = (*Queue)(nil)
