package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"floodproof/reference/queue"
)

// Steps implements queue.Stepper.
func (q *Queue) Steps(ctx context.Context, lease queue.Lease) ([]string, error) {
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	var steps []string
	err := q.read(ctx, func(c *conn) error {
		return c.query(sqlSteps, func(row []driver.Value) error {
			steps = append(steps, row[0].(string))
			return nil
		}, lease.ID)
	})
	if err != nil {
		return nil, fmt.Errorf("read the steps of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	return steps, nil
}

// Finish implements queue.Stepper. It is synced by itself, unlike a Settle: a step is most often one that nobody wants twice.
func (q *Queue) Finish(ctx context.Context, lease queue.Lease, step string) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	return q.underLease(ctx, lease, "finish a step of", newDurable, func(t *tx) (bool, error) {
		held, err := t.conn.exists(sqlHeld, lease.ID, lease.Token, t.now)
		if err != nil || !held {
			return false, err
		}
		_, _, err = t.conn.exec(sqlFinish, lease.ID, step)
		return true, err
	})
}

var _ queue.Stepper = (*Queue)(nil)
