package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// MinRetention is the shortest Options.Retention. What makes sense is longer than a provider goes on trying, which is days.
	MinRetention = time.Second
	// maxSweepPause is the longest pause between two looks for what may go.
	maxSweepPause = 10 * time.Minute
	// expireStretch is how many finished events one statement looks at, and expireAtOnce how many it deletes. expirePause is how long the disk then belongs to the others.
	expireStretch, expireAtOnce = 4096, 500
	expirePause                 = 50 * time.Millisecond
)

// sqlExpire deletes those of a stretch of finished events, the next $2 after the id $1, that were finished more than $4 microseconds ago, up to $3 of them. It leaves those
// alone that somebody else has in hand. It tells how many it has looked at, how many it has deleted, and where the next stretch begins.
const sqlExpire = `WITH stretch AS MATERIALIZED (
		SELECT id, at < (SELECT clock_timestamp()) - $4 * interval '1 microsecond' AS old FROM $.done WHERE id > $1 ORDER BY id LIMIT $2
	), chosen AS MATERIALIZED (
		SELECT d.id, d.dropped FROM $.done AS d JOIN (SELECT id FROM stretch WHERE old ORDER BY id LIMIT $3) AS o ON o.id = d.id
		WHERE d.at < (SELECT clock_timestamp()) - $4 * interval '1 microsecond' FOR UPDATE OF d SKIP LOCKED
	), gone AS (
		DELETE FROM $.done AS d USING chosen AS c WHERE d.id = c.id
	), deleted AS (
		DELETE FROM $.events AS e USING chosen AS c WHERE e.id = c.id RETURNING e.lane, c.dropped
	), untried AS (
		DELETE FROM $.attempts AS a USING chosen AS c WHERE a.id = c.id
	), undone AS (
		DELETE FROM $.acts AS a USING chosen AS c WHERE a.id = c.id
	), unfinished AS (
		DELETE FROM $.steps AS s USING chosen AS c WHERE s.id = c.id
	), counted AS (
		INSERT INTO $.finished (lane, jobs, expired) SELECT lane, -count(*), count(*) FROM deleted WHERE NOT dropped GROUP BY lane
	)
	SELECT (SELECT count(*) FROM stretch), (SELECT count(*) FROM chosen),
		coalesce((SELECT max(id) FROM (SELECT id FROM stretch WHERE old ORDER BY id LIMIT $3) AS o HAVING count(*) = $3), (SELECT max(id) FROM stretch), 0)`

// runSweeps deletes finished events that are older than the retention, until the queue closes. Any number of processes may do it at once.
//
// Note: what is done could be found by an index on its time. It would be written with each settlement, to be read a few times an hour. It is found by its id instead, which is the order
// in which it came, and the search ends at the first stretch of which none may go. One that was done out of that order may so stay a little longer, never shorter.
func (q *Queue) runSweeps() {
	ticker := time.NewTicker(min(q.opts.Retention/20, maxSweepPause))
	defer ticker.Stop()
	for {
		select {
		case <-q.closing:
			return
		case <-ticker.C:
			_ = q.sweep() // it may fail: the next one does it all
		}
	}
}

// sweep deletes what is old by now.
func (q *Queue) sweep() error {
	for after, timer := int64(0), time.NewTimer(0); ; timer.Reset(expirePause) {
		select {
		case <-q.closing:
			timer.Stop()
			return nil
		case <-timer.C:
		}
		var seen, deleted int
		err := q.read(context.Background(), func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, q.sql.expire, after, expireStretch, expireAtOnce, q.opts.Retention.Microseconds()).Scan(&seen, &deleted, &after)
		})
		if err != nil || seen == 0 || deleted == 0 {
			return err
		}
	}
}
