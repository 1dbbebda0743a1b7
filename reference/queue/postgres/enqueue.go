package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"floodproof/reference/queue"
)

// maxKey bounds provider, event id and lane in bytes, as they are stored: an entry of an index has to fit a third of a page
// (https://www.postgresql.org/docs/15/btree-implementation.html, read November 2026). The ids of providers have a few dozen.
const maxKey = 2000

// stored is a job ready to be written, with its texts escaped.
type stored struct {
	queue.Job
	encoding int16
	body     []byte
}

// enqueueCall is one Enqueue on its way.
type enqueueCall struct {
	call
	rows []stored
	size int
}

func (c *enqueueCall) bytes() int { return c.size }

// Enqueue implements queue.Queue. What can be wrong with a job is found, and its payload is compressed, before it shares a
// statement with others. An error of ctx leaves open whether the jobs were stored.
func (q *Queue) Enqueue(ctx context.Context, jobs ...queue.Job) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if err := ctx.Err(); err != nil || len(jobs) == 0 {
		return err
	}
	c := &enqueueCall{call: newCall()}
	if err := c.add(jobs, q.opts.MaxPayload); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	select {
	case q.enqueues <- c:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.wait(ctx); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	return nil
}

func (c *enqueueCall) add(jobs []queue.Job, maxPayload int) error {
	c.rows = make([]stored, len(jobs))
	for i, job := range jobs {
		if job.Provider == "" || job.EventID == "" {
			return fmt.Errorf("job %d of %d has the provider %q and the event id %q: both are needed to know it again", i+1, len(jobs), job.Provider, job.EventID)
		}
		if err := job.Debounce.Check(job.Resource); err != nil {
			return fmt.Errorf("event %q of %s: %w", job.EventID, job.Provider, err)
		}
		if len(job.Payload) > maxPayload {
			return fmt.Errorf("event %q of %s has %d bytes, the limit is %d: %w", job.EventID, job.Provider, len(job.Payload), maxPayload, queue.ErrTooLarge)
		}
		job.DeadOnArrival = clip(job.DeadOnArrival)
		for _, text := range []*string{&job.Provider, &job.EventID, &job.DeliveryID, &job.Type, &job.Resource, &job.Lane, &job.DeadOnArrival} {
			*text = escape(*text)
		}
		n := max(len(job.Provider)+len(job.EventID), len(job.Lane))
		if job.Debounce.Quiet > 0 {
			n = max(n, len(job.Provider)+len(job.Resource))
		}
		if n > maxKey {
			return fmt.Errorf("job %d of %d has a key of %d bytes, the limit is %d: %w", i+1, len(jobs), n, maxKey, queue.ErrTooLarge)
		}
		r := &c.rows[i]
		r.Job = job
		r.encoding, r.body = encode(job.Payload)
		c.size += len(r.body) + len(job.DeliveryID) + len(job.Resource) + 256
	}
	return nil
}

// runEnqueues stores what comes, all that waits in one statement, until the channel is closed.
func (q *Queue) runEnqueues(s *session) {
	for c := range q.enqueues {
		q.storeBatch(s, gather(c, q.enqueues))
	}
}

// storeBatch stores calls and answers them. If one of them is refused for what is in it, each gets a statement of its own, so that only
// the guilty one fails.
func (q *Queue) storeBatch(s *session, batch []*enqueueCall) {
	batch = slices.DeleteFunc(batch, (*enqueueCall).abandoned)
	err := q.store(s, batch)
	if len(batch) > 1 && refusesData(err) {
		for _, c := range batch {
			q.storeBatch(s, []*enqueueCall{c})
		}
		return
	}
	if err == nil {
		q.ring(batch)
	}
	for _, c := range batch {
		c.answer(err)
	}
}

// ring tells those who receive here of all lanes in a batch.
func (q *Queue) ring(batch []*enqueueCall) {
	rung := make(map[string]bool)
	for _, c := range batch {
		for i := range c.rows {
			if lane := c.rows[i].Lane; !rung[lane] {
				rung[lane] = true
				q.alarm.ring(unescape(lane))
			}
		}
	}
}

// refusesData reports whether the server found fault with the values of a statement, and not with its own state. The classes are those of
// https://www.postgresql.org/docs/15/errcodes-appendix.html (read November 2026).
func refusesData(err error) bool {
	var refused *pgconn.PgError
	if !errors.As(err, &refused) {
		return false
	}
	return slices.Contains([]string{"22", "23", "54"}, refused.Code[:min(2, len(refused.Code))])
}

// store writes the rows of calls in one transaction. They are written in the order of their keys: two statements that have events in common wait for each other
// in that order, and never in a circle.
func (q *Queue) store(s *session, batch []*enqueueCall) error {
	var rows []*stored
	for _, c := range batch {
		for i := range c.rows {
			rows = append(rows, &c.rows[i])
		}
	}
	if len(rows) == 0 {
		return nil
	}
	var updates resources
	for _, r := range rows {
		updates.add(&r.Job, r.Provider, r.Resource)
	}
	columns := newColumns(rows)
	args := []any{columns.receivedAt, columns.version, columns.place, columns.encoding,
		columns.texts[0], columns.texts[1], columns.texts[2], columns.texts[3], columns.texts[4], columns.texts[5], columns.texts[6], columns.body}
	statement := q.sql.store
	if len(updates.pairs) > 0 {
		statement = q.sql.storeRows
		args = append(args, columns.debounces(rows)...)
	}
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		return updates.query(ctx, conn, q.sql.makeRows, statement, args, func(rows pgx.Rows) error {
			rows.Close()
			return rows.Err()
		})
	})
}

// debounces are three columns more.
func (c *columns) debounces(rows []*stored) []any {
	quiet, longest, edge := make([]int64, len(rows)), make([]int64, len(rows)), make([]int16, len(rows))
	for i, from := range c.place {
		d := rows[from].Debounce
		quiet[i], longest[i], edge[i] = int64(d.Quiet), int64(d.MaxWait), int16(d.Edge)
	}
	return []any{quiet, longest, edge}
}

// columns are rows the other way round, as unnest takes them.
type columns struct {
	receivedAt, version []int64
	place               []int32
	encoding            []int16
	texts               [7][]string
	body                [][]byte
}

func newColumns(rows []*stored) *columns {
	order := make([]int32, len(rows))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { // of equal ones the first is stored
		return cmp.Or(strings.Compare(rows[a].Provider, rows[b].Provider), strings.Compare(rows[a].EventID, rows[b].EventID))
	})
	c := &columns{
		receivedAt: make([]int64, len(rows)), version: make([]int64, len(rows)),
		place: order, encoding: make([]int16, len(rows)), body: make([][]byte, len(rows)),
	}
	for i := range c.texts {
		c.texts[i] = make([]string, len(rows))
	}
	for i, from := range order {
		r := rows[from]
		c.receivedAt[i], c.version[i], c.encoding[i] = r.ReceivedAt.UnixMicro(), r.Version, r.encoding
		for t, text := range [...]string{r.Provider, r.EventID, r.DeliveryID, r.Type, r.Resource, r.Lane, r.DeadOnArrival} {
			c.texts[t][i] = text
		}
		if c.body[i] = r.body; r.body == nil {
			c.body[i] = []byte{} // nil would be NULL
		}
	}
	return c
}
