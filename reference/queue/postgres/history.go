package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"floodproof/reference/queue"
)

const (
	// eventState is where an event e stands, of which d is the row of done, l that of dead and j that of jobs: one of them has it.
	eventState = ` CASE WHEN d.dropped THEN 'dropped' WHEN d.id IS NOT NULL THEN 'done' WHEN l.id IS NOT NULL THEN 'failed' WHEN j.leased THEN 'processing' ELSE 'pending' END,
		coalesce(d.at, l.at, CASE WHEN j.leased THEN j.leased_at ELSE j.at END, e.stored_at), CASE WHEN j.leased THEN j.at END,
		coalesce(d.attempts, l.attempts, j.attempt, 0), coalesce(d.base, l.base, j.base, 0) `

	// sqlEvent finds an event with all that is known of it, as it is at one moment.
	sqlEvent = `SELECT` + eventState + `, e.received_at, e.version, e.encoding, e.provider, e.event_id, e.delivery_id, e.type, e.resource, e.lane, e.dead_on_arrival, e.body,
			e.quiet, e.longest, e.edge, e.stored_at,
			ARRAY(SELECT attempt FROM $.attempts AS a WHERE a.id = e.id ORDER BY attempt), ARRAY(SELECT at FROM $.attempts AS a WHERE a.id = e.id ORDER BY attempt),
			ARRAY(SELECT reason FROM $.attempts AS a WHERE a.id = e.id ORDER BY attempt),
			ARRAY(SELECT leases FROM $.acts AS a WHERE a.id = e.id ORDER BY at), ARRAY(SELECT at FROM $.acts AS a WHERE a.id = e.id ORDER BY at),
			ARRAY(SELECT what FROM $.acts AS a WHERE a.id = e.id ORDER BY at)
		FROM $.events AS e LEFT JOIN $.done AS d ON d.id = e.id LEFT JOIN $.dead AS l ON l.id = e.id LEFT JOIN $.jobs AS j ON j.lane = e.lane AND j.id = e.id
		WHERE e.provider = $1 AND e.event_id = $2`

	// eventColumns are what a listing reads.
	eventColumns = `SELECT e.id,` + eventState + `, e.received_at, e.provider, e.event_id, e.type, e.lane, e.dead_on_arrival `

	// sqlEvents lists the events of a stretch of ids. What waits is in no index by its id, and what is known of that comes with sqlDue.
	sqlEvents = eventColumns + `FROM $.events AS e LEFT JOIN $.done AS d ON d.id = e.id LEFT JOIN $.dead AS l ON l.id = e.id LEFT JOIN $.jobs AS j ON j.leased AND j.id = e.id
		WHERE e.id BETWEEN $1 AND $2 AND e.received_at >= $3 AND e.received_at < $4 ORDER BY e.id`

	// sqlLeased lists those that are leased, which are few.
	sqlLeased = eventColumns + `FROM $.jobs AS j JOIN $.events AS e ON e.id = j.id LEFT JOIN $.done AS d ON d.id = e.id LEFT JOIN $.dead AS l ON l.id = e.id
		WHERE j.leased AND e.received_at >= $1 AND e.received_at < $2 ORDER BY e.id`

	// sqlDue tells of jobs that wait since when, or until when, and how often they were leased.
	sqlDue = `SELECT id, at, attempt, base FROM $.jobs WHERE id = ANY ($1::bigint[])`

	// sqlAll and sqlSome are the ids between which events are. The sum keeps the server from walking along the primary key until it meets the first: it has an index for times.
	sqlAll  = `SELECT min(id), max(id) FROM $.events WHERE $1::bigint < $2::bigint`
	sqlSome = `SELECT min(id + 0), max(id + 0) FROM $.events WHERE received_at >= $1 AND received_at < $2`
)

// standing is what eventState says.
type standing struct {
	state        string
	since        time.Time
	deadline     *time.Time
	leases, base int
}

// columns are where its values go.
func (s *standing) columns() []any {
	return []any{&s.state, &s.since, &s.deadline, &s.leases, &s.base}
}

// put fills it in.
func (s *standing) put(e *queue.Event) {
	e.State, e.Since, e.Leases, e.Attempt = queue.State(s.state), s.since.UTC(), s.leases, s.leases-s.base
	if s.deadline != nil {
		e.Deadline = s.deadline.UTC()
	}
}

// past are the columns of attempts, or of acts.
type past struct {
	numbers []int
	at      []time.Time
	texts   []string
}

// Event implements queue.Historian. While an event waits, this takes as long as walking over those that wait before it in its lane. Of one whose payload is damaged what is left is
// returned, with an error that says so.
func (q *Queue) Event(ctx context.Context, provider, eventID string) (queue.Event, error) {
	if err := q.begin(); err != nil {
		return queue.Event{}, err
	}
	defer q.calls.Done()
	var e queue.Event
	var damage error
	err := q.read(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		e, damage, err = q.lookUp(ctx, conn, escape(provider), escape(eventID))
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = queue.ErrUnknownEvent
	}
	if err = errors.Join(err, damage); err != nil {
		return e, fmt.Errorf("look up event %q of %s: %w", eventID, provider, err)
	}
	return e, nil
}

func (q *Queue) lookUp(ctx context.Context, conn *pgx.Conn, provider, eventID string) (e queue.Event, damage, err error) {
	var s standing
	var receivedAt int64
	var encoding int16
	var b debounce
	var stored time.Time
	var attempts, acts past
	err = conn.QueryRow(ctx, q.sql.event, provider, eventID).Scan(append(s.columns(), &receivedAt, &e.Version, &encoding,
		&e.Provider, &e.EventID, &e.DeliveryID, &e.Type, &e.Resource, &e.Lane, &e.DeadOnArrival, &e.Payload, &b.quiet, &b.longest, &b.edge, &stored,
		&attempts.numbers, &attempts.at, &attempts.texts, &acts.numbers, &acts.at, &acts.texts)...)
	if err != nil {
		return queue.Event{}, nil, err
	}
	s.put(&e)
	e.Debounce = b.value()
	restore(receivedAt, &e.Job)
	if payload, err := decode(encoding, e.Payload); err != nil {
		damage = err
	} else {
		e.Payload = payload
	}
	if e.DeadOnArrival != "" {
		e.Attempts = append(e.Attempts, queue.Attempt{At: stored.UTC(), Reason: e.DeadOnArrival})
	}
	for i, n := range attempts.numbers {
		e.Attempts = append(e.Attempts, queue.Attempt{Number: n, At: attempts.at[i].UTC(), Reason: unescape(attempts.texts[i])})
	}
	for i, n := range acts.numbers {
		e.Acts = append(e.Acts, queue.Act{What: acts.texts[i], At: acts.at[i].UTC(), Leases: n})
	}
	return e, damage, nil
}

// eventStretch is how many ids one read of a listing covers. Between two of them no transaction is open: an old one keeps vacuum from its work.
const eventStretch = 4096

// Events implements queue.Historian. Those that are received in a stretch of time are found without reading the others, as far as they came in the order in which they were received.
func (q *Queue) Events(ctx context.Context, filter queue.EventFilter, fn func(queue.Event) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	l := newListing(filter)
	if filter.State == queue.StateProcessing {
		events, err := q.page(ctx, l, q.sql.leased, l.since, l.until)
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		return each(events, fn)
	}
	first, last, err := q.bounds(ctx, l)
	if err != nil {
		return fmt.Errorf("list the events: %w", err)
	}
	for from := first; from <= last; from += eventStretch {
		events, err := q.page(ctx, l, q.sql.events, from, min(from+eventStretch-1, last), l.since, l.until)
		if err != nil {
			return fmt.Errorf("list the events: %w", err)
		}
		if err := each(events, fn); err != nil {
			return err
		}
	}
	return nil
}

func each(events []queue.Event, fn func(queue.Event) error) error {
	for _, e := range events {
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}

// listing is a filter, ready for use.
type listing struct {
	queue.EventFilter
	since, until int64
	types        interface{ MatchString(string) bool }
}

func newListing(f queue.EventFilter) *listing {
	l := &listing{EventFilter: f, since: math.MinInt64, until: math.MaxInt64, types: f.TypePattern()}
	if !f.Since.IsZero() {
		l.since = f.Since.UnixMicro()
	}
	if !f.Until.IsZero() {
		l.until = f.Until.UnixMicro()
	}
	return l
}

// takes reports whether it lets an event through.
func (l *listing) takes(e *queue.Event) bool {
	return (l.Provider == "" || l.Provider == e.Provider) && (l.State == "" || l.State == e.State) && l.types.MatchString(e.Type)
}

// bounds are the first and the last id of what a listing may find; without any the first is above the last.
func (q *Queue) bounds(ctx context.Context, l *listing) (int64, int64, error) {
	statement := q.sql.some
	if l.Since.IsZero() && l.Until.IsZero() {
		statement = q.sql.all
	}
	var first, last *int64
	err := q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, statement, l.since, l.until).Scan(&first, &last)
	})
	if err != nil || first == nil {
		return 1, 0, err
	}
	return *first, *last, nil
}

// page runs a statement of a listing, as of one moment.
func (q *Queue) page(ctx context.Context, l *listing, statement string, args ...any) (events []queue.Event, err error) {
	err = q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, statement, args...)
			if err != nil {
				return err
			}
			var waiting map[int64]int
			if events, waiting, err = l.collect(rows); err != nil || len(waiting) == 0 {
				return err
			}
			return q.complete(ctx, tx, events, waiting)
		})
	})
	return events, err
}

// collect reads events, and where among them those are that wait, by id.
func (l *listing) collect(rows pgx.Rows) (events []queue.Event, waiting map[int64]int, err error) {
	waiting = make(map[int64]int)
	var id, receivedAt int64
	var s standing
	var e queue.Event
	_, err = pgx.ForEachRow(rows, append(append([]any{&id}, s.columns()...), &receivedAt, &e.Provider, &e.EventID, &e.Type, &e.Lane, &e.DeadOnArrival), func() error {
		next := e
		s.put(&next)
		restore(receivedAt, &next.Job)
		if !l.takes(&next) {
			return nil
		}
		if next.State == queue.StatePending {
			waiting[id] = len(events)
		}
		events = append(events, next)
		return nil
	})
	return events, waiting, err
}

// complete fills in what is known of those that wait.
func (q *Queue) complete(ctx context.Context, tx pgx.Tx, events []queue.Event, waiting map[int64]int) error {
	ids := make([]int64, 0, len(waiting))
	for id := range waiting {
		ids = append(ids, id)
	}
	rows, err := tx.Query(ctx, q.sql.due, ids)
	if err != nil {
		return err
	}
	s := standing{state: string(queue.StatePending)}
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id, &s.since, &s.leases, &s.base}, func() error {
		s.put(&events[waiting[id]])
		return nil
	})
	return err
}

var _ queue.Historian = (*Queue)(nil)
