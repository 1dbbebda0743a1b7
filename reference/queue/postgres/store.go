package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"floodproof/reference/queue"
)

// read lends the session for what is not part of every job's life.
func (q *Queue) read(ctx context.Context, use func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	select {
	case s := <-q.reader:
		defer func() { q.reader <- s }()
		return s.doContext(ctx, use)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Depth implements queue.Depther. It costs as much as counting the backlog and the dead letters. Jobs whose lease lapsed are waiting.
func (q *Queue) Depth(ctx context.Context) (queue.Depth, error) {
	if err := q.begin(); err != nil {
		return queue.Depth{}, err
	}
	defer q.calls.Done()
	var d queue.Depth
	err := q.read(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, q.sql.depth)
		if err != nil {
			return err
		}
		var l queue.LaneDepth
		var now time.Time
		var oldest, held *time.Time
		_, err = pgx.ForEachRow(rows, []any{&l.Lane, &l.Waiting, &l.Leased, &l.Dead, &l.Done, &l.Expired, &now, &oldest, &held}, func() error {
			next := l
			next.Lane = unescape(l.Lane)
			if oldest != nil {
				next.Oldest = now.Sub(*oldest)
			}
			if held != nil {
				next.Held = now.Sub(*held)
			}
			d.Lanes = append(d.Lanes, next)
			d.Waiting, d.Leased, d.Dead = d.Waiting+l.Waiting, d.Leased+l.Leased, d.Dead+l.Dead
			d.Done, d.Expired = d.Done+l.Done, d.Expired+l.Expired
			d.Oldest, d.Held = max(d.Oldest, next.Oldest), max(d.Held, next.Held)
			return nil
		})
		return err
	})
	if err != nil {
		return queue.Depth{}, fmt.Errorf("read the depth: %w", err)
	}
	slices.SortFunc(d.Lanes, func(a, b queue.LaneDepth) int { return strings.Compare(a.Lane, b.Lane) })
	return d, nil
}

// deadPage is how many dead letters one read takes. No transaction is open between the pages: an old one keeps vacuum from its work.
const deadPage = 32

// DeadLetters implements queue.DeadLister. A letter that is added meanwhile is seen too; fn may call the queue.
func (q *Queue) DeadLetters(ctx context.Context, fn func(queue.DeadLetter) error) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	at, id := pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}, int64(0)
	for {
		var letters []queue.DeadLetter
		err := q.read(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
			letters, err = q.deadLetters(ctx, conn, &at, &id)
			return err
		})
		if err != nil {
			return fmt.Errorf("list the dead letters: %w", err)
		}
		if len(letters) == 0 {
			return nil
		}
		for _, letter := range letters {
			if err := fn(letter); err != nil {
				return err
			}
		}
	}
}

// deadLetters reads the letters after (at, id), and moves those on.
func (q *Queue) deadLetters(ctx context.Context, conn *pgx.Conn, at *pgtype.Timestamptz, id *int64) (letters []queue.DeadLetter, err error) {
	rows, err := conn.Query(ctx, q.sql.letters, *at, *id, deadPage, maxClaimBytes)
	if err != nil {
		return nil, err
	}
	var d queue.DeadLetter
	var receivedAt int64
	var encoding int16
	var b debounce
	_, err = pgx.ForEachRow(rows, []any{id, &d.At, &d.Attempts, &d.Reason, &receivedAt, &d.Version, &encoding,
		&d.Provider, &d.EventID, &d.DeliveryID, &d.Type, &d.Resource, &d.Lane, &d.DeadOnArrival, &d.Payload, &b.quiet, &b.longest, &b.edge}, func() error {
		*at = pgtype.Timestamptz{Time: d.At, Valid: true}
		next := d
		next.Debounce = b.value()
		restore(receivedAt, &next.Job)
		next.Reason = unescape(d.Reason)
		d.Payload = nil                                                 // it is kept
		if payload, err := decode(encoding, next.Payload); err == nil { // what is left of a damaged one is shown all the same
			next.Payload = payload
		}
		letters = append(letters, next)
		return nil
	})
	return letters, err
}
