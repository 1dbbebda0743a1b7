package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
)

const (
	// sqlSubject finds the event that something is done with, and locks what is known of its resource. An event that a newer version followed, or follows, is superseded.
	sqlSubject = `event AS MATERIALIZED (
		SELECT e.id, octet_length(e.body) AS size, e.version, e.quiet, e.provider, e.resource, e.lane FROM $.events AS e WHERE e.provider = $1 AND e.event_id = $2
	), updates AS MATERIALIZED (
		SELECT r.id, r.version, r.pending FROM $.rows AS r JOIN event AS e ON e.quiet > 0 AND r.provider = e.provider AND r.resource = e.resource FOR UPDATE OF r
	), superseded AS MATERIALIZED (
		SELECT FROM updates AS u, event AS e WHERE e.version < u.version OR u.pending <> 0
	)`

	// sqlRedrive tells whether there was the letter, and whether it was due again: not when a newer version of its resource was there since.
	sqlRedrive = `WITH ` + sqlSubject + `, letter AS (
		DELETE FROM $.dead AS d USING event AS e WHERE d.id = e.id AND NOT EXISTS (SELECT FROM superseded)
		RETURNING d.id, d.token, d.attempts, e.size, d.lane
	), noted AS (
		INSERT INTO $.acts (id, at, leases, what) SELECT id, clock_timestamp(), attempts, 'redriven' FROM letter
	), due AS (
		INSERT INTO $.jobs (id, at, token, attempt, base, size, leased, lane, row_id)
		SELECT id, clock_timestamp(), token, attempts, attempts, size, false, lane, (SELECT id FROM updates) FROM letter RETURNING lane
	)
	SELECT (SELECT lane FROM due), EXISTS (SELECT FROM superseded) FROM event AS e WHERE EXISTS (SELECT FROM $.dead AS d WHERE d.id = e.id)`

	// sqlDrop takes a letter off the list. That its event is known stays.
	sqlDrop = `WITH letter AS (
		DELETE FROM $.dead AS d USING $.events AS e WHERE d.id = e.id AND e.provider = $1 AND e.event_id = $2 RETURNING d.id, d.token, d.attempts, d.base
	), remembered AS (
		INSERT INTO $.done (id, at, token, attempts, base, dropped) SELECT id, clock_timestamp(), token, attempts, base, true FROM letter
	)
	INSERT INTO $.acts (id, at, leases, what) SELECT id, clock_timestamp(), attempts, 'dropped' FROM letter`

	// sqlReplay begins an event anew that nobody holds; with $3 its steps too. It tells its lane, whether that was done, and whether it was not because a newer version of its
	// resource was there since. The token of a job that was never leased becomes 1: so its row of updates takes it for one that comes again.
	sqlReplay = `WITH ` + sqlSubject + `, waiting AS (
		UPDATE $.jobs AS j SET base = j.attempt, at = CASE WHEN j.row_id IS NULL THEN least(j.at, clock_timestamp()) ELSE j.at END
		FROM event AS e WHERE j.lane = e.lane AND j.id = e.id AND NOT j.leased RETURNING j.id, j.attempt AS attempts
	), letter AS (
		DELETE FROM $.dead AS d USING event AS e WHERE d.id = e.id AND NOT EXISTS (SELECT FROM superseded) RETURNING d.id, d.token, d.attempts
	), finished AS (
		DELETE FROM $.done AS d USING event AS e WHERE d.id = e.id AND NOT EXISTS (SELECT FROM superseded) RETURNING d.id, d.token, d.attempts, d.dropped
	), again AS (
		SELECT id, token, attempts FROM letter UNION ALL SELECT id, token, attempts FROM finished
	), due AS (
		INSERT INTO $.jobs (id, at, token, attempt, base, size, leased, lane, row_id)
		SELECT a.id, clock_timestamp(), greatest(a.token, 1), a.attempts, a.attempts, e.size, false, e.lane, (SELECT id FROM updates) FROM again AS a, event AS e
	), uncounted AS (
		INSERT INTO $.finished (lane, jobs) SELECT e.lane, -1 FROM finished AS f, event AS e WHERE NOT f.dropped
	), begun AS (
		SELECT id, attempts FROM again UNION ALL SELECT id, attempts FROM waiting
	), forgotten AS (
		DELETE FROM $.steps AS s USING begun AS b WHERE $3 AND s.id = b.id
	), noted AS (
		INSERT INTO $.acts (id, at, leases, what) SELECT id, clock_timestamp(), attempts, 'replayed' FROM begun
	)
	SELECT lane, EXISTS (SELECT FROM begun), EXISTS (SELECT FROM superseded) AND NOT EXISTS (SELECT FROM $.jobs AS j WHERE j.leased AND j.id = e.id) FROM event AS e`
)

// act does something with an event in one statement, which is a transaction.
func (q *Queue) act(ctx context.Context, verb, provider, eventID string, do func(context.Context, *pgx.Conn) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := q.read(ctx, do); err != nil {
		return fmt.Errorf("%s event %q of %s: %w", verb, eventID, provider, err)
	}
	return nil
}

// Redrive implements queue.Redriver.
func (q *Queue) Redrive(ctx context.Context, provider, eventID string) error {
	return q.act(ctx, "redrive", provider, eventID, func(ctx context.Context, conn *pgx.Conn) error {
		var lane *string
		var superseded bool
		err := conn.QueryRow(ctx, q.sql.redrive, escape(provider), escape(eventID)).Scan(&lane, &superseded)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return queue.ErrNotDead
		case err != nil:
			return err
		case superseded:
			return queue.ErrSuperseded
		case lane == nil: // somebody else was faster
			return queue.ErrNotDead
		}
		q.alarm.ring(unescape(*lane))
		return nil
	})
}

// Drop implements queue.Dropper.
func (q *Queue) Drop(ctx context.Context, provider, eventID string) error {
	return q.act(ctx, "drop", provider, eventID, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, q.sql.drop, escape(provider), escape(eventID))
		if err == nil && tag.RowsAffected() == 0 {
			err = queue.ErrNotDead
		}
		return err
	})
}

// Replay implements queue.Replayer. A pending event of a debounced row stays until its window ends.
func (q *Queue) Replay(ctx context.Context, provider, eventID string, forgetSteps bool) error {
	return q.act(ctx, "replay", provider, eventID, func(ctx context.Context, conn *pgx.Conn) error {
		var lane string
		var begun, superseded bool
		err := conn.QueryRow(ctx, q.sql.replay, escape(provider), escape(eventID), forgetSteps).Scan(&lane, &begun, &superseded)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return queue.ErrUnknownEvent
		case err != nil:
			return err
		case begun:
			q.alarm.ring(unescape(lane))
			return nil
		case superseded:
			return queue.ErrSuperseded
		}
		return queue.ErrInProgress // or it is on its way from one state to another at this moment
	})
}

var (
	_ queue.Redriver = (*Queue)(nil)
	_ queue.Dropper  = (*Queue)(nil)
	_ queue.Replayer = (*Queue)(nil)
)
