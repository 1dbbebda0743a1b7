package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
)

// schemaRows makes what debounced jobs need besides: a row of rows is what is known of the updates of one resource. It changes in the statement that changes the job
// which is the reason: by triggers, whose conditions let all other jobs pass without a call. So there is no moment at which one is there without the other, and no
// additional round trip.
//
// Who inserts or settles locks the rows first, in their order, and then the jobs. A claim comes to the jobs first. It therefore waits for no row:
// a job whose row is locked is put off for a moment. Nor does it change any other job, which could be one that the same statement is about to lease.
const schemaRows = `
CREATE INDEX jobs_row ON $.jobs (row_id, id) WHERE row_id IS NOT NULL;
CREATE TABLE $.rows (
	id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	version  bigint NOT NULL DEFAULT -9223372036854775808, -- the highest that came
	pending  bigint NOT NULL DEFAULT 0, -- the job that waits for the end of the window or of another's lease, 0 for none
	running  bigint NOT NULL DEFAULT 0, -- the job that was leased last, 0 once it is settled
	opened   timestamptz NOT NULL DEFAULT '-infinity', -- when the window did
	due      timestamptz NOT NULL DEFAULT '-infinity', -- when it ends
	shut     timestamptz NOT NULL DEFAULT '-infinity', -- until when a leading edge answers for what comes
	provider text COLLATE "C" NOT NULL,
	resource text COLLATE "C" NOT NULL,
	CONSTRAINT rows_known UNIQUE (provider, resource)
) WITH (fillfactor = 70);

-- retire ends a job that a newer one answers for.
CREATE FUNCTION $.retire(job bigint, updates bigint) RETURNS void LANGUAGE sql AS $f$
	WITH gone AS (DELETE FROM $.jobs WHERE row_id = updates AND id = job RETURNING id, lane, token, attempt, base),
	remembered AS (INSERT INTO $.done (id, at, token, attempts, base) SELECT id, clock_timestamp(), token, attempt, base FROM gone)
	INSERT INTO $.finished (lane, jobs) SELECT lane, 1 FROM gone
$f$;

-- arrive puts a job that comes, or comes again since somebody redrove or replayed it, into its row.
CREATE FUNCTION $.arrive() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE
	w $.rows;
	v bigint;
	q interval;
	most interval;
	e smallint;
BEGIN
	SELECT * INTO STRICT w FROM $.rows WHERE id = NEW.row_id FOR UPDATE;
	IF NEW.token > 0 THEN
		UPDATE $.rows SET pending = NEW.id, opened = NEW.at, due = NEW.at WHERE id = w.id;
		RETURN NEW;
	END IF;
	SELECT version, (quiet + 999) / 1000 * interval '1 microsecond', (longest + 999) / 1000 * interval '1 microsecond', edge
		INTO STRICT v, q, most, e FROM $.events WHERE id = NEW.id;
	IF v < w.version OR e = 1 AND NEW.at < w.shut THEN
		INSERT INTO $.finished (lane, jobs) VALUES (NEW.lane, 1);
		INSERT INTO $.done (id, at, token, attempts, base) VALUES (NEW.id, clock_timestamp(), 0, 0, 0);
		IF v >= w.version THEN
			UPDATE $.rows SET version = v, shut = greatest(shut, least(NEW.at + q, opened + most)) WHERE id = w.id;
		END IF;
		RETURN NULL;
	END IF;
	IF w.pending <> 0 THEN
		PERFORM $.retire(w.pending, w.id);
		IF w.due > w.opened THEN -- it is no leading edge, which is due at once
			w.due := least(greatest(w.due, NEW.at + q), w.opened + most);
			w.shut := greatest(w.shut, w.due);
		END IF;
	ELSIF e <> 0 AND NEW.at >= w.shut THEN
		w.opened := NEW.at;
		w.due := NEW.at;
		w.shut := NEW.at + q;
	ELSE
		w.opened := NEW.at;
		w.due := NEW.at + q;
		w.shut := greatest(w.shut, w.due);
	END IF;
	UPDATE $.rows SET version = v, pending = NEW.id, opened = w.opened, due = w.due, shut = w.shut WHERE id = w.id;
	NEW.at := greatest(w.due, NEW.at); -- looks begin near the present
	RETURN NEW;
END
$f$;
CREATE TRIGGER arrives BEFORE INSERT ON $.jobs FOR EACH ROW WHEN (NEW.row_id IS NOT NULL) EXECUTE FUNCTION $.arrive();

-- may_lease decides about a job that is claimed. While another of its row is leased it waits for that, and one whose lease lapsed gives way to a newer one.
CREATE FUNCTION $.may_lease() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE
	w $.rows;
	busy timestamptz;
BEGIN
	SELECT * INTO w FROM $.rows WHERE id = NEW.row_id FOR UPDATE SKIP LOCKED;
	IF NOT FOUND AND OLD.leased THEN
		RETURN NULL; -- it stays as it is: with another time its lapsed lease would be in force
	ELSIF NOT FOUND THEN
		busy := clock_timestamp() + interval '5 milliseconds';
	ELSIF w.pending <> NEW.id AND (w.pending <> 0 OR w.running <> NEW.id) THEN
		UPDATE $.rows SET running = 0 WHERE id = w.id AND running = NEW.id;
		PERFORM $.retire(NEW.id, w.id);
		RETURN NULL;
	ELSIF w.running NOT IN (0, NEW.id) THEN
		SELECT at INTO busy FROM $.jobs WHERE row_id = w.id AND id = w.running AND leased AND at > clock_timestamp();
	END IF;
	IF busy IS NOT NULL THEN
		NEW := OLD; -- which is not leased
		NEW.at := busy;
		RETURN NEW;
	END IF;
	UPDATE $.rows SET running = NEW.id, pending = 0 WHERE id = w.id;
	RETURN NEW;
END
$f$;
CREATE TRIGGER claims BEFORE UPDATE ON $.jobs FOR EACH ROW WHEN (NEW.row_id IS NOT NULL AND NEW.token > OLD.token) EXECUTE FUNCTION $.may_lease();

-- release lets the pending job of a row go when it is due, if it waited for one that is over.
CREATE FUNCTION $.release() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE
	w $.rows;
BEGIN
	UPDATE $.rows SET running = 0 WHERE id = OLD.row_id AND running = OLD.id RETURNING * INTO w;
	IF w.pending <> 0 THEN
		UPDATE $.jobs SET at = greatest(w.due, clock_timestamp()) WHERE row_id = w.id AND id = w.pending;
	END IF;
	RETURN NULL;
END
$f$;
CREATE TRIGGER ends AFTER DELETE ON $.jobs FOR EACH ROW WHEN (OLD.row_id IS NOT NULL) EXECUTE FUNCTION $.release();

-- give_way follows a job that is to be tried again. If there is a newer one, that is tried in its place, and no sooner.
CREATE FUNCTION $.give_way() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE
	w $.rows;
BEGIN
	SELECT * INTO STRICT w FROM $.rows WHERE id = NEW.row_id FOR UPDATE;
	IF w.pending IN (0, NEW.id) THEN
		UPDATE $.rows SET running = CASE running WHEN NEW.id THEN 0 ELSE running END, pending = NEW.id, opened = clock_timestamp(), due = NEW.at WHERE id = w.id;
	ELSE
		UPDATE $.rows SET due = greatest(due, NEW.at) WHERE id = w.id;
		PERFORM $.retire(NEW.id, w.id);
	END IF;
	RETURN NULL;
END
$f$;
CREATE TRIGGER returns AFTER UPDATE ON $.jobs FOR EACH ROW WHEN (NEW.row_id IS NOT NULL AND OLD.leased AND NOT NEW.leased AND NEW.token = OLD.token)
	EXECUTE FUNCTION $.give_way();
`

const (
	// sqlMakeRows makes the rows of resources that have none, and locks all of them, in their order.
	sqlMakeRows = `INSERT INTO $.rows AS r (provider, resource) SELECT * FROM unnest($1::text[], $2::text[])
		ON CONFLICT ON CONSTRAINT rows_known DO UPDATE SET version = r.version`

	// sqlLockRows locks the rows of resources, in their order.
	sqlLockRows = `SELECT FROM unnest($1::text[], $2::text[]) AS u (provider, resource) JOIN $.rows AS r ON r.provider = u.provider AND r.resource = u.resource
		ORDER BY r.provider, r.resource FOR UPDATE OF r`

	// sqlStoreRows is sqlStore for events of which some are debounced, whose rows are locked. Jobs come to their rows in the order in which they came.
	sqlStoreRows = `WITH stored AS (
		INSERT INTO $.events (received_at, version, stored_at, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body, quiet, longest, edge)
		SELECT received_at, version, (SELECT clock_timestamp()) + place * interval '1 microsecond', encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body, nullif(quiet, 0), nullif(longest, 0), CASE WHEN quiet > 0 THEN edge END
		FROM unnest($1::bigint[], $2::bigint[], $3::integer[], $4::smallint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bytea[],
			$13::bigint[], $14::bigint[], $15::smallint[])
			AS new (received_at, version, place, encoding, provider, event_id, delivery_id, type, resource, lane, dead_on_arrival, body, quiet, longest, edge)
		ON CONFLICT ON CONSTRAINT events_known DO NOTHING
		RETURNING id, stored_at, lane, dead_on_arrival, octet_length(body) AS size, provider, resource, quiet
	), due AS (
		INSERT INTO $.jobs (id, at, token, attempt, size, leased, lane, row_id)
		SELECT id, stored_at, 0, 0, size, false, lane, CASE WHEN quiet > 0 THEN (SELECT r.id FROM $.rows AS r WHERE r.provider = s.provider AND r.resource = s.resource) END
		FROM stored AS s WHERE dead_on_arrival = '' ORDER BY stored_at
	)
	INSERT INTO $.dead (id, at, token, attempts, lane, reason)
	SELECT id, stored_at, 0, 0, lane, dead_on_arrival FROM stored WHERE dead_on_arrival <> ''`
)

// resources are those of debounced jobs, each once and in the order of their rows, as columns.
type resources struct {
	pairs               [][2]string
	providers, resource []string
}

// add adds a job's, whose texts are escaped.
func (r *resources) add(job *queue.Job, provider, resource string) {
	if job.Debounce.Quiet > 0 {
		r.pairs = append(r.pairs, [2]string{provider, resource})
	}
}

// any puts them in order and reports whether there are any.
func (r *resources) any() bool {
	slices.SortFunc(r.pairs, func(a, b [2]string) int { return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1])) })
	for _, p := range slices.Compact(r.pairs) {
		r.providers, r.resource = append(r.providers, p[0]), append(r.resource, p[1])
	}
	return len(r.pairs) > 0
}

// query runs a statement, behind one that locks the rows of the jobs that it is about, if any are debounced: both are one transaction and one round trip.
func (r *resources) query(ctx context.Context, conn *pgx.Conn, lock, statement string, args []any, read func(pgx.Rows) error) error {
	if !r.any() {
		rows, err := conn.Query(ctx, statement, args...)
		if err != nil {
			return err
		}
		return read(rows)
	}
	var batch pgx.Batch
	batch.Queue(lock, r.providers, r.resource)
	batch.Queue(statement, args...).Query(read)
	return conn.SendBatch(ctx, &batch).Close()
}
