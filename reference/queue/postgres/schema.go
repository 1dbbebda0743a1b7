package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// schemaVersion is kept in the table meta. A higher one was made by a newer program and is refused.
const schemaVersion = 4

// schema makes the tables; $ is their schema. It runs as one transaction.
//
// What never changes (events) stands apart from what changes three times in a life (jobs), so that the versions of a row that an update leaves behind are
// narrow, and the table that vacuum has to keep up with is as small as the backlog. A job that is done is deleted from jobs and leaves a narrow row in done; the event
// stays and is known again. Every row of jobs is a live job, so that one index serves the due ones and the lapsed ones alike: `at` is when the job may
// be leased, by its due time or by the end of its lease. No foreign keys: checking one locks a row of events for each job.
//
// Texts compare by their bytes (COLLATE "C"): the order of a language changes with the system's library, and a unique index in an order that has changed
// lets the same event in twice (https://wiki.postgresql.org/wiki/Locale_data_changes, read November 2026).
const schema = `
CREATE SCHEMA IF NOT EXISTS $;
CREATE TABLE $.events (
	id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, -- the order of coming, give or take what came at the same time
	received_at     bigint NOT NULL, -- the receiver's clock, microseconds since 1970
	version         bigint NOT NULL,
	stored_at       timestamptz NOT NULL,
	encoding        smallint NOT NULL, -- of the body: 0 raw, 1 s2
	provider        text COLLATE "C" NOT NULL,
	event_id        text COLLATE "C" NOT NULL,
	delivery_id     text COLLATE "C" NOT NULL,
	type            text COLLATE "C" NOT NULL,
	resource        text COLLATE "C" NOT NULL,
	lane            text COLLATE "C" NOT NULL,
	dead_on_arrival text COLLATE "C" NOT NULL,
	body            bytea NOT NULL,
	quiet           bigint,   -- of one that is debounced, nanoseconds, like the next
	longest         bigint,
	edge            smallint,
	CONSTRAINT events_known UNIQUE (provider, event_id)
);
ALTER TABLE $.events ALTER body SET STORAGE EXTERNAL; -- it is compressed when it comes
CREATE INDEX events_received ON $.events USING brin (received_at) WITH (autosummarize = on); -- finds where to begin a listing, and takes no room
CREATE TABLE $.jobs (
	id      bigint NOT NULL,
	at      timestamptz NOT NULL,
	token   bigint NOT NULL,  -- grows with each lease
	attempt integer NOT NULL, -- leases so far
	size    integer NOT NULL, -- of the body, in bytes
	leased  boolean NOT NULL,
	lane    text COLLATE "C" NOT NULL,
	row_id  bigint,           -- of one that is debounced; without a value it takes no room
	base    integer NOT NULL DEFAULT 0, -- the leases before its attempts were last counted from zero again
	leased_at timestamptz     -- of one that is or was leased
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 1);
CREATE INDEX jobs_due ON $.jobs (lane, at, id);
CREATE UNIQUE INDEX jobs_leased ON $.jobs (id) WHERE leased;
CREATE TABLE $.dead (
	id       bigint PRIMARY KEY,
	at       timestamptz NOT NULL,
	token    bigint NOT NULL,
	attempts integer NOT NULL,
	lane     text COLLATE "C" NOT NULL,
	reason   text COLLATE "C" NOT NULL,
	base     integer NOT NULL DEFAULT 0
);
CREATE INDEX dead_at ON $.dead (at, id);
CREATE TABLE $.done ( -- and what was dropped
	id       bigint PRIMARY KEY,
	at       timestamptz NOT NULL,
	token    bigint NOT NULL,
	attempts integer NOT NULL,
	base     integer NOT NULL,
	dropped  boolean NOT NULL DEFAULT false
);
CREATE TABLE $.attempts (
	id      bigint NOT NULL,
	attempt integer NOT NULL,
	at      timestamptz NOT NULL,
	reason  text COLLATE "C" NOT NULL,
	PRIMARY KEY (id, attempt)
);
CREATE TABLE $.acts ( -- what people did
	id     bigint NOT NULL,
	at     timestamptz NOT NULL,
	leases integer NOT NULL,
	what   text COLLATE "C" NOT NULL
);
CREATE INDEX acts_id ON $.acts (id, at);
CREATE TABLE $.steps (
	id   bigint NOT NULL,
	step text COLLATE "C" NOT NULL,
	PRIMARY KEY (id, step)
);
CREATE TABLE $.finished ( -- sum it; rows are added with every settlement and put together now and then
	lane    text COLLATE "C" NOT NULL,
	jobs    bigint NOT NULL,
	expired bigint NOT NULL DEFAULT 0 -- those of them that were deleted since
);
CREATE TABLE $.meta (version integer NOT NULL);
INSERT INTO $.meta VALUES (4);
` + schemaRows

// statements are all that run on the tables of one schema.
type statements struct {
	store, claim, peek, giveBack, settle, compact string
	depth, letters, redrive, drop, replay, steps  string
	makeRows, lockRows, storeRows                 string
	event, events, leased, due, all, some, expire string
}

func newStatements(namespace string) statements {
	in := func(statement string) string { return inSchema(namespace, statement) }
	return statements{
		store: in(sqlStore), claim: in(sqlClaim), peek: in(sqlPeek), giveBack: in(sqlGiveBack), settle: in(sqlSettle), compact: in(sqlCompact),
		depth: in(sqlDepth), letters: in(sqlLetters), redrive: in(sqlRedrive), drop: in(sqlDrop), replay: in(sqlReplay), steps: in(sqlSteps),
		makeRows: in(sqlMakeRows), lockRows: in(sqlLockRows), storeRows: in(sqlStoreRows),
		event: in(sqlEvent), events: in(sqlEvents), leased: in(sqlLeased), due: in(sqlDue), all: in(sqlAll), some: in(sqlSome), expire: in(sqlExpire),
	}
}

// inSchema puts the schema's name where a statement says "$.".
func inSchema(namespace, statement string) string {
	name := pgx.Identifier{namespace}.Sanitize()
	statement = strings.ReplaceAll(statement, "SCHEMA IF NOT EXISTS $;", "SCHEMA IF NOT EXISTS "+name+";")
	return strings.ReplaceAll(statement, "$.", name+".")
}

// The statements. Each is a transaction of its own. clock_timestamp is read in a subquery, once: by itself it would be read for each row, and no index could be used for it.
const (
	// sqlStore stores events that are not known, and makes them due or dead. The place keeps the order of what came together.
	sqlStore = `WITH stored AS (
		INSERT INTO $.events (received_at, version, stored_at, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body)
		SELECT received_at, version, (SELECT clock_timestamp()) + place * interval '1 microsecond', encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body
		FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bytea[])
			AS new (received_at, version, place, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body)
		ON CONFLICT ON CONSTRAINT events_known DO NOTHING
		RETURNING id, stored_at, lane, dead_on_arrival, octet_length(body) AS size
	), due AS (
		INSERT INTO $.jobs (id, at, token, attempt, size, leased, lane)
		SELECT id, stored_at, 0, 0, size, false, lane FROM stored WHERE dead_on_arrival = ''
	)
	INSERT INTO $.dead (id, at, token, attempts, lane, reason)
	SELECT id, stored_at, 0, 0, lane, dead_on_arrival FROM stored WHERE dead_on_arrival <> ''`

	// sqlClaim leases up to $3 jobs of lane $1 that are due since $2 or later, as many as bodies of $4 bytes hold but at least one, for $5 microseconds.
	// The rows are locked in a materialized part: a subquery that is run again for another row of the update would lock more than its limit.
	sqlClaim = `WITH due AS MATERIALIZED (
		SELECT ctid AS place, id, at, leased, attempt, size FROM $.jobs
		WHERE lane = $1 AND at >= $2 AND at <= (SELECT clock_timestamp())
		ORDER BY at, id LIMIT $3 FOR UPDATE SKIP LOCKED
	), chosen AS MATERIALIZED (
		SELECT place, id, at, leased, attempt FROM (SELECT *, sum(size) OVER (ORDER BY at, id) - size AS before FROM due) AS d WHERE before < $4
	), lapsed AS (
		INSERT INTO $.attempts (id, attempt, at, reason) SELECT id, attempt, clock_timestamp(), 'lease lapsed' FROM chosen WHERE leased ON CONFLICT DO NOTHING
	), claimed AS (
		UPDATE $.jobs AS j SET leased = true, token = j.token + 1, attempt = j.attempt + 1, leased_at = (SELECT clock_timestamp()),
			at = (SELECT clock_timestamp()) + $5 * interval '1 microsecond'
		FROM chosen AS c WHERE j.ctid = c.place RETURNING j.id, j.token, j.attempt - j.base AS attempt, j.at AS deadline, j.leased, c.at
	)
	SELECT c.id, c.token, c.attempt, c.deadline, c.at, e.received_at, e.version, e.encoding, e.provider, e.event_id, e.delivery_id, e.type, e.resource, e.body,
		e.quiet, e.longest, e.edge
	FROM claimed AS c JOIN $.events AS e ON e.id = c.id WHERE c.leased ORDER BY c.at, c.id`

	// sqlPeek tells the server's time and when the next job of lane $1 can be leased, if one can at or after $2.
	sqlPeek = `SELECT clock_timestamp(), (SELECT at FROM $.jobs WHERE lane = $1 AND at >= $2 ORDER BY at, id LIMIT 1)`

	// sqlGiveBack returns leases that nobody waited for any more, as if they had not been given, but for the token.
	sqlGiveBack = `UPDATE $.jobs AS j SET leased = false, attempt = j.attempt - 1, at = g.at
		FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS g (id, token, at) WHERE j.leased AND j.id = g.id AND j.token = g.token`

	// sqlSettle ends leases, prolongs them, or writes down a step that was finished under one. An id comes once in a statement. It returns those that were in force.
	sqlSettle = `WITH s AS MATERIALIZED (
		SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::text[]) AS s (id, token, verb, micros, reason)
	), done AS (
		DELETE FROM $.jobs AS j USING s WHERE s.verb = 1 AND j.leased AND j.id = s.id AND j.token = s.token AND j.at > clock_timestamp()
		RETURNING j.id, j.at, j.lane, j.token, j.attempt, j.base
	), retried AS (
		UPDATE $.jobs AS j SET leased = false, at = clock_timestamp() + s.micros * interval '1 microsecond'
		FROM s WHERE s.verb = 2 AND j.leased AND j.id = s.id AND j.token = s.token AND j.at > clock_timestamp()
		RETURNING j.id, j.at, j.attempt, s.reason
	), died AS (
		DELETE FROM $.jobs AS j USING s WHERE s.verb = 3 AND j.leased AND j.id = s.id AND j.token = s.token AND j.at > clock_timestamp()
		RETURNING j.id, j.at, j.token, j.attempt, j.base, j.lane, s.reason
	), extended AS (
		UPDATE $.jobs AS j SET at = clock_timestamp() + s.micros * interval '1 microsecond'
		FROM s WHERE s.verb = 4 AND j.leased AND j.id = s.id AND j.token = s.token AND j.at > clock_timestamp()
		RETURNING j.id, j.at
	), stepped AS (
		SELECT j.id, j.at, s.reason FROM $.jobs AS j JOIN s ON j.id = s.id AND j.token = s.token
		WHERE s.verb = 5 AND j.leased AND j.at > clock_timestamp() FOR UPDATE OF j
	), kept AS (
		INSERT INTO $.steps (id, step) SELECT id, reason FROM stepped ON CONFLICT DO NOTHING
	), counted AS (
		INSERT INTO $.finished (lane, jobs) SELECT lane, count(*) FROM done GROUP BY lane
	), remembered AS (
		INSERT INTO $.done (id, at, token, attempts, base) SELECT id, clock_timestamp(), token, attempt, base FROM done
	), listed AS (
		INSERT INTO $.dead (id, at, token, attempts, base, lane, reason) SELECT id, clock_timestamp(), token, attempt, base, lane, reason FROM died
	), noted AS (
		INSERT INTO $.attempts (id, attempt, at, reason)
		SELECT id, attempt, clock_timestamp(), reason FROM retried UNION ALL SELECT id, attempt, clock_timestamp(), reason FROM died ON CONFLICT DO NOTHING
	)
	SELECT id, at FROM done UNION ALL SELECT id, at FROM retried UNION ALL SELECT id, at FROM died UNION ALL SELECT id, at FROM extended UNION ALL SELECT id, at FROM stepped`

	sqlSteps = `SELECT step FROM $.steps WHERE id = $1 ORDER BY step`

	// sqlCompact puts counts together, those that nobody else is putting together.
	sqlCompact = `WITH gone AS (
		DELETE FROM $.finished WHERE ctid = ANY (ARRAY(SELECT ctid FROM $.finished LIMIT $1 FOR UPDATE SKIP LOCKED)) RETURNING lane, jobs, expired
	)
	INSERT INTO $.finished (lane, jobs, expired) SELECT lane, sum(jobs), sum(expired) FROM gone GROUP BY lane`

	// sqlDepth counts what is there. finished counts what is done, and then, with the opposite sign and as expired, what of that was deleted.
	sqlDepth = `WITH now AS MATERIALIZED (SELECT clock_timestamp() AS now), counts AS (
		SELECT lane, count(*) FILTER (WHERE NOT leased OR at <= now) AS waiting, count(*) FILTER (WHERE leased AND at > now) AS leased,
			0::bigint AS dead, 0::numeric AS done, 0::numeric AS expired, min(at) FILTER (WHERE at <= now) AS oldest, min(leased_at) FILTER (WHERE leased AND at > now) AS held
		FROM $.jobs, now GROUP BY lane
		UNION ALL SELECT lane, 0, 0, count(*), 0, 0, NULL, NULL FROM $.dead GROUP BY lane
		UNION ALL SELECT lane, 0, 0, 0, sum(jobs), sum(expired), NULL, NULL FROM $.finished GROUP BY lane
	)
	SELECT lane, sum(waiting)::bigint, sum(leased)::bigint, sum(dead)::bigint, sum(done)::bigint, sum(expired)::bigint, (SELECT now FROM now), min(oldest), min(held)
	FROM counts GROUP BY lane`

	// sqlLetters lists up to $3 dead letters after ($1, $2), as many as bodies of $4 bytes hold but at least one.
	sqlLetters = `SELECT id, at, attempts, reason, received_at, version, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body, quiet, longest, edge FROM (
		SELECT *, sum(octet_length(body)) OVER (ORDER BY at, id) - octet_length(body) AS before FROM (
			SELECT d.id, d.at, d.attempts - d.base AS attempts, d.reason, e.received_at, e.version, e.encoding, e.provider, e.event_id, e.delivery_id, e.type, e.resource, e.lane, e.dead_on_arrival, e.body, e.quiet, e.longest, e.edge
			FROM $.dead AS d JOIN $.events AS e ON e.id = d.id WHERE (d.at, d.id) > ($1, $2) ORDER BY d.at, d.id LIMIT $3
		) AS page
	) AS weighed WHERE before < $4 ORDER BY at, id`
)

// sqlReady looks whether the tables are there. to_regclass would not do: it answers from a memory that does not hear of others while its transaction is open.
const sqlReady = `SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'meta')`

// create makes the tables, unless they are there. Under a lock, because "if not exists" does not keep two from making the same thing.
func (q *Queue) create(ctx context.Context, conn *pgx.Conn) error {
	var ready bool
	if err := conn.QueryRow(ctx, sqlReady, q.opts.Namespace).Scan(&ready); err != nil {
		return fmt.Errorf("look for the tables: %w", err)
	}
	if !ready {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended('floodproof ' || $1, 0))", q.opts.Namespace); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, sqlReady, q.opts.Namespace).Scan(&ready); err != nil || ready {
				return err
			}
			_, err := tx.Exec(ctx, inSchema(q.opts.Namespace, schema), pgx.QueryExecModeSimpleProtocol)
			return err
		})
		if err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	}
	var version int
	if err := conn.QueryRow(ctx, inSchema(q.opts.Namespace, "SELECT version FROM $.meta")).Scan(&version); err != nil {
		return fmt.Errorf("read the version of the tables: %w", err)
	}
	if version != schemaVersion {
		return fmt.Errorf("the tables have version %d and this program knows %d: use the program that fits, or another namespace", version, schemaVersion)
	}
	return q.checkEncoding(ctx, conn)
}

// checkEncoding refuses databases that cannot hold every text.
func (q *Queue) checkEncoding(ctx context.Context, conn *pgx.Conn) error {
	var encoding string
	if err := conn.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return fmt.Errorf("read the encoding of the database: %w", err)
	}
	if encoding != "UTF8" {
		return errors.New("the database has the encoding " + encoding + ": make one with ENCODING 'UTF8'")
	}
	return nil
}
