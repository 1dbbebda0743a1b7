package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"floodproof/reference/queue"
)

const (
	// minPeek and maxPeek are the pauses between two looks at a queue in which nothing was due; they grow from one to the other.
	minPeek = 5 * time.Millisecond
	maxPeek = 20 * time.Millisecond
	// maxClaimBytes bounds the stored payloads that one Receive takes on; it gets at least one job.
	maxClaimBytes = 4 << 20
)

// never is later than any time in the file.
const never = int64(1<<63 - 1)

// lane is what the receivers of one lane in this process share.
type lane struct {
	name string
	// turn is held by the one Receive that watches for due jobs; the others stand in line for it.
	turn chan struct{}
	// wake tells the watching Receive that something was enqueued or given back here.
	wake chan struct{}
	// claiming is how many jobs the claims that are under way may take.
	claiming atomic.Int64
}

// poke wakes the watching Receive.
func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// lane finds a lane by its name, and makes it the first time.
func (q *Queue) lane(name string) *lane {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[name]
	if l == nil {
		l = &lane{name: name, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
		q.lanes[name] = l
	}
	return l
}

// Receive implements queue.Queue. It may return fewer jobs than are due, to bound the memory that their payloads take.
//
// While nothing is due it only reads, every few milliseconds, and takes no lock that a writer needs. One Receive of the process looks for a lane, the
// others stand in line behind it.
func (q *Queue) Receive(ctx context.Context, name string, max int) ([]queue.Lease, error) {
	if max < 1 {
		return nil, fmt.Errorf("receive up to %d jobs: use at least 1", max)
	}
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	q.indexer.serve()
	l := q.lane(name)
	for {
		if err := q.await(ctx, l, max); err != nil {
			return nil, cmp.Or(ctx.Err(), err)
		}
		leases, err := q.claim(ctx, name, max)
		l.claiming.Add(-int64(max))
		if err != nil {
			return nil, cmp.Or(ctx.Err(), fmt.Errorf("receive: %w", err))
		}
		if len(leases) > 0 {
			return leases, nil
		}
	}
}

// await returns when there is something to claim beyond what others here are claiming already, with max counted into that.
func (q *Queue) await(ctx context.Context, l *lane, max int) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-q.closing:
		return queue.ErrClosed
	}
	defer func() { <-l.turn }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := minPeek; ; pause = min(2*pause, maxPeek) {
		next, err := q.peek(ctx, l)
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		wait := time.Duration(min(next-q.now(), maxPeek.Microseconds())) * time.Microsecond
		if wait <= 0 {
			l.claiming.Add(int64(max))
			return nil
		}
		timer.Reset(min(wait, pause))
		select {
		case <-timer.C:
		case <-l.wake:
			pause = minPeek
		case <-ctx.Done():
			return ctx.Err()
		case <-q.closing:
			return queue.ErrClosed
		}
	}
}

// peek finds when something can be leased, if that is soon.
func (q *Queue) peek(ctx context.Context, l *lane) (at int64, err error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	horizon := q.now() + maxPeek.Microseconds()
	var row []int64
	err = q.read(ctx, func(c *conn) error {
		row, err = c.integers(sqlPeek, never, l.name, horizon, l.claiming.Load(), l.name, horizon)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("look for due jobs: %w", err)
	}
	return min(row[0], row[1]), nil
}

// read lends the reading connection.
func (q *Queue) read(ctx context.Context, use func(*conn) error) error {
	select {
	case c := <-q.reader:
		defer func() { q.reader <- c }()
		return use(c)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// row is a job as it stands in the file.
type row struct {
	lease queue.Lease // without what stands in the record alone
	state int64
	at    int64
	size  int
	place place
	row   int64 // of updates that are debounced, 0 for none
	// leases is how often it was leased in all, and leasedAt when it was last.
	leases   int
	leasedAt int64
}

// claim leases what is due.
func (q *Queue) claim(ctx context.Context, lane string, max int) ([]queue.Lease, error) {
	if q.debounces.Load() {
		// A newer version that was acknowledged must be known before an older one is given out.
		if _, err := q.indexAll(ctx); err != nil {
			return nil, err
		}
	}
	o, claimed := q.claimOperation(lane, max)
	if err := q.writer.do(ctx, o); err != nil {
		return nil, err
	}
	near := q.spans(*claimed)
	defer q.giveBack(near)
	leases := make([]queue.Lease, 0, len(*claimed))
	for i := range *claimed {
		if (*claimed)[i].row != 0 {
			q.debounces.Store(true)
		}
		lease, err := q.unpack(&(*claimed)[i], near)
		if errors.Is(err, errDamaged) {
			// Nobody can ever work on it, and it must not stand in the way of the others. The lease is ours by now, whatever became of ctx.
			err = q.bury(context.WithoutCancel(ctx), (*claimed)[i].lease, err.Error())
			if err == nil || errors.Is(err, queue.ErrLeaseLost) {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		leases = append(leases, lease)
	}
	return leases, nil
}

// bury makes a dead letter of a job that is damaged, and tells of it.
func (q *Queue) bury(ctx context.Context, lease queue.Lease, reason string) error {
	err := q.Settle(ctx, lease, queue.Dead(reason))
	if err == nil {
		q.told.Tell(queue.DeadLetter{Job: lease.Job, Reason: reason, Attempts: lease.Attempt, At: time.UnixMicro(q.now()).UTC()})
	}
	return err
}

// claimOperation leases what is due; its result may be read once the operation was answered. If the caller has left by then, the jobs are given back: nobody
// would work on them until their leases lapse.
func (q *Queue) claimOperation(lane string, max int) (*operation, *[]row) {
	claimed := new([]row)
	o := newOperation(func(t *tx) (err error) {
		*claimed, err = t.claim(lane, max, q.opts.Lease.Microseconds())
		return err
	})
	o.bytes = 64 * max
	o.undo = func() *operation {
		if len(*claimed) == 0 {
			return nil
		}
		return newOperation(func(t *tx) error { return t.giveBack(*claimed) })
	}
	return o, claimed
}

// unpack reads the record, on the caller's goroutine.
func (q *Queue) unpack(r *row, near spans) (queue.Lease, error) {
	job, err := q.load(r, near)
	if err != nil {
		return queue.Lease{}, fmt.Errorf("event %q of %s: %w", r.lease.EventID, r.lease.Provider, err)
	}
	lease := r.lease
	lease.Job = job
	lease.DeadOnArrival = "" // which is the reason of its first attempt now
	return lease, nil
}

func (q *Queue) load(r *row, near spans) (queue.Job, error) {
	job, err := near.unpack(q.log, r)
	if err == nil && (job.Provider != r.lease.Provider || job.EventID != r.lease.EventID) {
		err = fmt.Errorf("%w: segment %d has another event at offset %d", errDamaged, r.place.segment, r.place.offset)
	}
	return job, err
}

// claim leases up to max jobs, by the time at which they could be: pending ones since they are due, leased ones since they lapsed.
func (t *tx) claim(lane string, max int, lease int64) ([]row, error) {
	lapsed, err := t.fetch(sqlLapsed, lane, max)
	if err != nil {
		return nil, fmt.Errorf("find lapsed leases: %w", err)
	}
	pending, err := t.fetch(sqlPending, lane, max)
	if err != nil {
		return nil, fmt.Errorf("find due jobs: %w", err)
	}
	var claimed []row
	for _, r := range merge(lapsed, pending, max) {
		ok, err := t.mayLease(&r)
		if err == nil && ok {
			err = t.lease(&r, lease)
		}
		if err != nil {
			return nil, fmt.Errorf("lease event %q of %s: %w", r.lease.EventID, r.lease.Provider, err)
		}
		if ok {
			claimed = append(claimed, r)
		}
	}
	return claimed, nil
}

// errEnough ends a query early.
var errEnough = errors.New("enough")

func (t *tx) fetch(query, lane string, max int) ([]row, error) {
	var rows []row
	size := 0
	err := t.conn.query(query, func(columns []driver.Value) error {
		r := scanJob(columns)
		if size += r.size; len(rows) > 0 && size > maxClaimBytes {
			return errEnough
		}
		rows = append(rows, r)
		return nil
	}, lane, t.now, int64(max))
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, err
}

// merge takes the first max of two lists that are in order.
func merge(a, b []row, max int) []row {
	out := make([]row, 0, min(max, len(a)+len(b)))
	for len(out) < max && len(a)+len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0].at <= b[0].at {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

// lease gives out one job. Where the last lease of it lapsed, that is how its last attempt ended.
func (t *tx) lease(r *row, lease int64) error {
	if r.state == stateProcessing {
		if err := t.note(r.lease.ID, "lease lapsed"); err != nil {
			return err
		}
	} else {
		d := t.delta(r.lease.Lane)
		d.waiting--
		d.leased++
	}
	deadline := t.now + lease
	if _, _, err := t.conn.exec(sqlLease, deadline, t.now, r.lease.ID); err != nil {
		return err
	}
	r.lease.Token++
	r.lease.Attempt++
	r.lease.Deadline = time.UnixMicro(deadline)
	return nil
}

// giveBack returns jobs that nobody waited for any more, as if they had not been leased, but for the token.
func (t *tx) giveBack(rows []row) error {
	for _, r := range rows {
		changed, _, err := t.conn.exec(sqlGiveBack, r.at, r.lease.ID, r.lease.Token)
		if err != nil {
			return fmt.Errorf("give back event %q of %s: %w", r.lease.EventID, r.lease.Provider, err)
		}
		d := t.delta(r.lease.Lane)
		d.waiting += changed
		d.leased -= changed
		t.wake(r.lease.Lane)
		if changed > 0 && r.row != 0 {
			w, err := t.windowByID(r.row)
			if err == nil {
				err = t.returned(&w, r.lease.ID, r.at)
			}
			if err != nil {
				return fmt.Errorf("give back event %q of %s: %w", r.lease.EventID, r.lease.Provider, err)
			}
		}
	}
	return nil
}

// scanJob reads jobColumns. The schema and the statements are ours, so that a value of another type is a mistake in here, and panics.
func scanJob(c []driver.Value) row {
	return row{
		state: c[1].(int64), at: c[2].(int64), size: int(c[9].(int64)), place: place{segment: c[10].(int64), offset: c[11].(int64)}, row: c[13].(int64),
		leases: int(c[4].(int64)), leasedAt: c[15].(int64),
		lease: queue.Lease{
			ID: c[0].(int64), Token: c[3].(int64), Attempt: int(c[4].(int64) - c[14].(int64)),
			Job: queue.Job{
				ReceivedAt: time.UnixMicro(c[5].(int64)).UTC(), Provider: c[6].(string), EventID: c[7].(string), Type: c[8].(string), Lane: c[12].(string),
			},
		},
	}
}
