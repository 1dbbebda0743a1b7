package sqlite

// schemaVersion is kept in PRAGMA user_version. A file of a higher version was written by a newer program and is refused.
const schemaVersion = 5

// The states of a job, as stored. What the column `at` means depends on them: one column instead of three keeps the row small,
// and an index only has to move when the state does.
const (
	statePending    = 0 // at: when it is due
	stateProcessing = 1 // at: when its lease lapses
	stateDone       = 2 // at: when it was settled
	stateFailed     = 3 // at: when it was given up
	stateDropped    = 4 // at: when somebody dropped the dead letter
)

// schema creates what is missing. Jobs are small rows that change three times in a life, and hold what they are found by; what does not change stands in
// the log (record.go). Each partial index holds only the jobs of its
// state: the finished ones, which are kept for deduplication, cost the claim nothing.
//
// The literals in the WHERE clauses of the indexes and of the statements must be the same: SQLite uses a partial
// index only where the statement's own condition implies that of the index, and `state < 2` does not serve `state = 0`
// (https://www.sqlite.org/partialindex.html). TestStatementsUseTheirIndex watches over it.
const schema = `
CREATE TABLE IF NOT EXISTS jobs (
	id          INTEGER PRIMARY KEY,
	lane        TEXT NOT NULL,
	state       INTEGER NOT NULL,
	at          INTEGER NOT NULL, -- microseconds since 1970
	token       INTEGER NOT NULL, -- grows with each lease
	attempt     INTEGER NOT NULL, -- leases so far
	base        INTEGER NOT NULL, -- those before its attempts were last counted from zero again
	leased_at   INTEGER NOT NULL, -- microseconds since 1970, while it is leased
	received_at INTEGER NOT NULL, -- microseconds since 1970
	size        INTEGER NOT NULL, -- of the record, in bytes
	segment     INTEGER NOT NULL, -- the file that it stands in
	offset      INTEGER NOT NULL, -- where in that
	provider    TEXT NOT NULL,
	event_id    TEXT NOT NULL,
	type        TEXT NOT NULL,
	row         INTEGER NOT NULL, -- of updates that are debounced, 0 for none
	UNIQUE (provider, event_id)
);
CREATE INDEX IF NOT EXISTS jobs_pending    ON jobs (lane, at) WHERE state = 0;
CREATE INDEX IF NOT EXISTS jobs_processing ON jobs (lane, at) WHERE state = 1;
CREATE INDEX IF NOT EXISTS jobs_failed     ON jobs (at) WHERE state = 3;
CREATE TABLE IF NOT EXISTS attempts (
	job     INTEGER NOT NULL,
	attempt INTEGER NOT NULL,     -- 0: given up before anybody leased it
	at      INTEGER NOT NULL,     -- microseconds since 1970
	reason  TEXT NOT NULL,
	PRIMARY KEY (job, attempt)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (
	id       INTEGER PRIMARY KEY,
	provider TEXT NOT NULL,
	resource TEXT NOT NULL,
	version  INTEGER NOT NULL,    -- the highest that came
	pending  INTEGER NOT NULL,    -- the job that waits for the end of the window, 0 for none
	running  INTEGER NOT NULL,    -- the job that was leased last, 0 once it is settled
	opened   INTEGER NOT NULL,    -- when the window did, microseconds since 1970
	due      INTEGER NOT NULL,    -- when it ends
	shut     INTEGER NOT NULL,    -- until when a leading edge answers for what comes
	UNIQUE (provider, resource)
);
CREATE TABLE IF NOT EXISTS steps (
	job  INTEGER NOT NULL,
	step TEXT NOT NULL,
	PRIMARY KEY (job, step)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS acts (
	job     INTEGER NOT NULL,
	at      INTEGER NOT NULL,     -- microseconds since 1970
	attempt INTEGER NOT NULL,     -- leases by then
	what    TEXT NOT NULL,
	PRIMARY KEY (job, at, what)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS segments (
	number  INTEGER PRIMARY KEY,
	indexed INTEGER NOT NULL,     -- up to this offset its jobs are here
	jobs    INTEGER NOT NULL      -- how many of its jobs are here, -1 once its file may go
);
CREATE TABLE IF NOT EXISTS lanes (
	lane    TEXT PRIMARY KEY,
	waiting INTEGER NOT NULL,
	leased  INTEGER NOT NULL,
	dead    INTEGER NOT NULL,
	done    INTEGER NOT NULL,
	expired INTEGER NOT NULL      -- done ones that retention has deleted
) WITHOUT ROWID;
PRAGMA user_version = 5;
`

// The statements. Each is prepared once per connection.
//
// A limit that is a plain parameter is looked at when SQLite plans the statement, and each new value has it planned anew; with a sign before it, it is
// taken as it comes (sqlite3ExprIsInteger in https://sqlite.org/src/file/src/expr.c). A twentieth of a busy worker's time went into that.
const (
	sqlBegin    = `BEGIN IMMEDIATE`
	sqlSnapshot = `BEGIN`
	sqlCommit   = `COMMIT`
	sqlRollback = `ROLLBACK`

	sqlInsertJob = `INSERT INTO jobs (lane, state, at, token, attempt, base, leased_at, received_at, size, segment, offset, provider, event_id, type, row)
		VALUES (?, ?, ?, 0, 0, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	sqlInsertAttempt = `INSERT INTO attempts (job, attempt, at, reason) SELECT id, attempt, ?, ? FROM jobs WHERE id = ? ON CONFLICT DO NOTHING`
	sqlCount         = `INSERT INTO lanes VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET waiting = waiting + excluded.waiting,
		leased = leased + excluded.leased, dead = dead + excluded.dead, done = done + excluded.done, expired = expired + excluded.expired`

	sqlMakeRow = `INSERT INTO rows (provider, resource, version, pending, running, opened, due, shut) VALUES (?, ?, ?, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING`
	rowColumns = ` id, version, pending, running, opened, due, shut `
	sqlRow     = `SELECT` + rowColumns + `FROM rows WHERE provider = ? AND resource = ?`
	sqlRowByID = `SELECT` + rowColumns + `FROM rows WHERE id = ?`
	sqlSetRow  = `UPDATE rows SET version = ?, pending = ?, running = ?, opened = ?, due = ?, shut = ? WHERE id = ?`
	sqlSetDue  = `UPDATE jobs SET at = ? WHERE id = ? AND state = 0 RETURNING lane`
	sqlRetire  = `UPDATE jobs SET state = 2, at = ? WHERE id = ? AND state IN (0, 1)`
	sqlJob     = `SELECT state, at, row, lane FROM jobs WHERE id = ?`

	sqlSteps  = `SELECT step FROM steps WHERE job = ? ORDER BY step`
	sqlFinish = `INSERT INTO steps VALUES (?, ?) ON CONFLICT DO NOTHING`
	sqlHeld   = `SELECT 1 FROM jobs WHERE id = ? AND token = ? AND state = 1 AND at > ?`

	sqlSegment  = `SELECT indexed FROM segments WHERE number = ?`
	sqlSegments = `SELECT number, indexed FROM segments`
	sqlIndexed  = `INSERT INTO segments VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET indexed = excluded.indexed, jobs = jobs + excluded.jobs`
	sqlKnown    = `SELECT 1 FROM jobs WHERE provider = ? AND event_id = ?`

	// jobColumns are what scanJob reads. Records are read after the lease is committed, without the write lock: they never change.
	jobColumns = ` j.id, j.state, j.at, j.token, j.attempt, j.received_at, j.provider, j.event_id, j.type, j.size, j.segment, j.offset, j.lane, j.row, j.base, j.leased_at `

	sqlPending = `SELECT` + jobColumns + `FROM jobs AS j WHERE j.state = 0 AND j.lane = ? AND j.at <= ? ORDER BY j.at, j.id LIMIT +?`
	sqlLapsed  = `SELECT` + jobColumns + `FROM jobs AS j WHERE j.state = 1 AND j.lane = ? AND j.at <= ? ORDER BY j.at, j.id LIMIT +?`
	sqlFailed  = `SELECT` + jobColumns + `, (SELECT reason FROM attempts AS a WHERE a.job = j.id ORDER BY a.attempt DESC LIMIT 1)
		FROM jobs AS j WHERE j.state = 3 AND (j.at, j.id) > (?, ?) ORDER BY j.at, j.id LIMIT +?`
	sqlEvent    = `SELECT` + jobColumns + `FROM jobs AS j WHERE j.provider = ? AND j.event_id = ?`
	sqlAttempts = `SELECT attempt, at, reason FROM attempts WHERE job = ? ORDER BY attempt`
	sqlActs     = `SELECT what, at, attempt FROM acts WHERE job = ? ORDER BY at`
	sqlRange    = `SELECT (SELECT min(id) FROM jobs), (SELECT max(id) FROM jobs)`
	sqlLeased   = `SELECT` + jobColumns + `FROM jobs AS j WHERE j.state = 1 AND j.received_at >= ? AND j.received_at < ?`
	sqlEvents   = `SELECT` + jobColumns + `FROM jobs AS j WHERE j.id BETWEEN ? AND ? AND j.received_at >= ? AND j.received_at < ? ORDER BY j.id`

	sqlLease    = `UPDATE jobs SET state = 1, at = ?, leased_at = ?, token = token + 1, attempt = attempt + 1 WHERE id = ?`
	sqlGiveBack = `UPDATE jobs SET state = 0, at = ?, attempt = attempt - 1 WHERE id = ? AND token = ? AND state = 1`
	sqlSettle   = `UPDATE jobs SET state = ?, at = ?, leased_at = 0 WHERE id = ? AND token = ? AND state = 1 AND at > ?`
	sqlExtend   = `UPDATE jobs SET at = ? WHERE id = ? AND token = ? AND state = 1 AND at > ?`

	sqlFind   = `SELECT id, state, at, row, lane FROM jobs WHERE provider = ? AND event_id = ?`
	sqlAnew   = `UPDATE jobs SET state = 0, at = ?, base = attempt WHERE id = ?`
	sqlDrop   = `UPDATE jobs SET state = 4, at = ? WHERE id = ?`
	sqlAct    = `INSERT INTO acts (job, at, attempt, what) SELECT id, ?, attempt, ? FROM jobs WHERE id = ? ON CONFLICT DO NOTHING`
	sqlForget = `DELETE FROM steps WHERE job = ?`

	// What is finished is found by the number of the job, a stretch at a time: an index of it would be written with every settlement, for ever, and be read now and then.
	sqlFinished = `SELECT id, at FROM jobs WHERE id BETWEEN ? AND ? AND state IN (2, 4) ORDER BY id`
	// The newest job stays: the next one's number is counted on from it, and must be one that no lease ever had.
	sqlExpire  = `DELETE FROM jobs WHERE id = ? AND state IN (2, 4) AND at < ? AND id < (SELECT max(id) FROM jobs) RETURNING lane, segment, state`
	sqlExpired = `UPDATE segments SET jobs = jobs - 1 WHERE number = ?`
	sqlNoActs  = `DELETE FROM acts WHERE job = ?`
	sqlNoNotes = `DELETE FROM attempts WHERE job = ?`
	sqlEmpty   = `UPDATE segments SET jobs = -1 WHERE indexed = ? AND jobs = 0 AND number < ?`
	sqlGone    = `SELECT number FROM segments WHERE jobs = -1`

	// sqlPeek finds the next two instants at which something can be leased: a due job beyond those that are being claimed
	// already, and a lapsed lease.
	sqlPeek = `SELECT (SELECT at FROM jobs WHERE state = 0 AND lane = ? AND at <= ? ORDER BY at LIMIT 1 OFFSET +?),
		(SELECT at FROM jobs WHERE state = 1 AND lane = ? AND at <= ? ORDER BY at LIMIT 1)`
	sqlDepth = `SELECT l.lane, l.waiting, l.leased, l.dead, l.done, l.expired,
		(SELECT count(*) FROM jobs WHERE state = 1 AND lane = l.lane AND at <= ?),
		(SELECT at FROM jobs WHERE state = 0 AND lane = l.lane AND at <= ? ORDER BY at LIMIT 1),
		(SELECT at FROM jobs WHERE state = 1 AND lane = l.lane AND at <= ? ORDER BY at LIMIT 1),
		(SELECT min(leased_at) FROM jobs WHERE state = 1 AND lane = l.lane AND at > ?)
		FROM lanes AS l ORDER BY l.lane`

	// NOOP (SQLite 3.51) reports how long the write-ahead log is and does nothing.
	sqlWALSize           = `PRAGMA wal_checkpoint(NOOP)`
	sqlCheckpoint        = `PRAGMA wal_checkpoint(PASSIVE)`
	sqlCheckpointRestart = `PRAGMA wal_checkpoint(RESTART)`
)
