package postgres

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"floodproof/reference/queue"
)

const (
	// minPause and maxPause are the pauses between two looks at a lane in which nothing was due; they grow from one to the other.
	minPause = 5 * time.Millisecond
	maxPause = 20 * time.Millisecond
	// maxClaim and maxClaimBytes bound what one statement leases, in jobs and in bytes of bodies; it gets at least one.
	maxClaim      = 1000
	maxClaimBytes = 4 << 20
	// fullLook is how often a lane is looked at from its very beginning, unless that takes more than one part in fullShare of the time, and floorSlack how far
	// before the oldest job of the last look the others begin. Jobs that are due before that come late: their enqueuer's commit took longer, or their claim broke.
	fullLook   = time.Second
	fullShare  = 20
	floorSlack = 250 * time.Millisecond
)

// receiveCall is one Receive on its way.
type receiveCall struct {
	call
	lane   string
	max    int
	leases []queue.Lease // valid after a good answer
}

// Receive implements queue.Queue. It may return fewer jobs than are due, to bound the memory that their payloads take.
//
// Calls of one handle for one lane share a statement. While nothing is due, the handle looks every few milliseconds, and at once
// after an Enqueue of its own.
func (q *Queue) Receive(ctx context.Context, lane string, max int) ([]queue.Lease, error) {
	if max < 1 {
		return nil, fmt.Errorf("receive up to %d jobs: use at least 1", max)
	}
	if err := q.begin(); err != nil {
		return nil, err
	}
	defer q.calls.Done()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &receiveCall{call: newCall(), lane: lane, max: max}
	select {
	case q.receives <- c:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-q.closing:
		return nil, queue.ErrClosed
	}
	if err := c.wait(ctx); err != nil {
		return nil, cmp.Or(ctx.Err(), fmt.Errorf("receive: %w", err))
	}
	return c.leases, nil
}

// alarm tells the receiving goroutine in which lanes something came.
type alarm struct {
	mu    *sync.Mutex
	lanes map[string]bool
	rung  chan struct{}
}

func newAlarm() alarm {
	return alarm{mu: new(sync.Mutex), lanes: make(map[string]bool), rung: make(chan struct{}, 1)}
}

func (a alarm) ring(lane string) {
	a.mu.Lock()
	a.lanes[lane] = true
	a.mu.Unlock()
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// take calls fn for each lane that was rung for, once.
func (a alarm) take(fn func(lane string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for lane := range a.lanes {
		fn(lane)
	}
	clear(a.lanes)
}

// line is a lane with those who wait for its jobs.
type line struct {
	name    string // escaped
	waiting []*receiveCall
	look    time.Time     // when to look next
	pause   time.Duration // the last one
	// floor is the server's time from which on the next look begins: what is due earlier was leased. Dead entries of an index that cannot be removed while
	// somebody's transaction is open would make each look longer than the one before.
	floor time.Time
	full  time.Time // when the next look from the very beginning is
}

// runReceives serves all who receive, until the channel is closed.
func (q *Queue) runReceives(s *session) {
	lines := make(map[string]*line)
	timer := time.NewTimer(0)
	defer timer.Stop()
	closing := q.closing
	for {
		select {
		case c, ok := <-q.receives:
			if !ok {
				return
			}
			l := lines[c.lane]
			if l == nil {
				l = &line{name: escape(c.lane)}
				lines[c.lane] = l
			}
			if len(l.waiting) == 0 {
				l.look, l.pause = time.Time{}, 0
			}
			l.waiting = append(l.waiting, c)
			if closing == nil {
				l.dismiss(queue.ErrClosed)
			}
		case <-closing:
			for _, l := range lines {
				l.dismiss(queue.ErrClosed)
			}
			closing = nil
		case <-q.alarm.rung:
			q.alarm.take(func(lane string) {
				if l := lines[lane]; l != nil {
					l.look, l.pause = time.Time{}, 0
				}
			})
		case <-timer.C:
		}
		next := time.Hour
		for _, l := range lines {
			next = min(next, q.serve(s, l))
		}
		timer.Reset(next)
	}
}

// dismiss answers all who wait.
func (l *line) dismiss(err error) {
	for _, c := range l.waiting {
		c.answer(err)
	}
	l.waiting = nil
}

// serve looks for jobs, if it is time and somebody waits, and returns after how long it wants to look again.
func (q *Queue) serve(s *session, l *line) time.Duration {
	stay := l.waiting[:0]
	for _, c := range l.waiting {
		if !c.abandoned() {
			stay = append(stay, c)
		}
	}
	if l.waiting = stay; len(stay) == 0 {
		return time.Hour
	}
	if wait := time.Until(l.look); wait > 0 {
		return wait
	}
	wait, err := q.lookFor(s, l)
	if err != nil {
		l.dismiss(err)
		return time.Hour
	}
	l.look = time.Now().Add(wait)
	return wait
}

// lookFor leases what is due and hands it out, and tells when to look again. Where nothing was due a moment ago it asks the cheap question first.
func (q *Queue) lookFor(s *session, l *line) (wait time.Duration, err error) {
	begin := time.Now()
	full := !begin.Before(l.full)
	if full {
		l.floor = time.Time{}
	}
	if l.pause > 0 && !full {
		if wait, err := q.peek(s, l); err != nil || wait > 0 {
			return wait, err
		}
	}
	claimed, err := q.claim(s, l, l.wanted())
	if err != nil {
		return 0, err
	}
	if full {
		l.full = time.Now().Add(max(fullLook, fullShare*time.Since(begin)))
	}
	if len(claimed) > 0 {
		l.floor, l.pause = claimed[0].was.Add(-floorSlack), 0
		return 0, q.handOut(s, l, claimed)
	}
	wait, err = q.peek(s, l)
	return max(wait, minPause), err // one that is due by now is locked by somebody else
}

// wanted is how many jobs those who wait would take.
func (l *line) wanted() int {
	n := 0
	for _, c := range l.waiting {
		n += min(c.max, maxClaim)
	}
	return min(n, maxClaim)
}

// claimed is a lease with what is needed to take it back.
type claimed struct {
	queue.Lease
	was time.Time
}

// claim leases up to limit jobs of a lane. One whose body cannot be read becomes a dead letter: nobody can ever work on it, and it must not stand in the way
// of the others.
func (q *Queue) claim(s *session, l *line, limit int) (got []claimed, err error) {
	var damaged []*settleCall
	var letters []queue.DeadLetter
	err = s.do(func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, q.sql.claim, l.name, l.from(), limit, maxClaimBytes, q.opts.Lease.Microseconds())
		if err != nil {
			return err
		}
		var c claimed
		var receivedAt int64
		var encoding int16
		var d debounce
		_, err = pgx.ForEachRow(rows, []any{&c.ID, &c.Token, &c.Attempt, &c.Deadline, &c.was, &receivedAt, &c.Version, &encoding,
			&c.Provider, &c.EventID, &c.DeliveryID, &c.Type, &c.Resource, &c.Payload, &d.quiet, &d.longest, &d.edge}, func() error {
			next := c
			next.Debounce = d.value()
			c.Payload = nil // it is kept
			next.Lane = l.name
			restore(receivedAt, &next.Job)
			if next.Payload, err = decode(encoding, next.Payload); err != nil {
				next.Payload = nil
				damaged = append(damaged, &settleCall{lease: next.Lease, verb: verbDead, reason: escape(clip(err.Error()))})
				letters = append(letters, queue.DeadLetter{Job: next.Job, Reason: clip(err.Error()), Attempts: next.Attempt, At: time.Now().UTC()})
				return nil
			}
			got = append(got, next)
			return nil
		})
		return err
	})
	if err != nil || len(damaged) == 0 {
		return got, err
	}
	held, err := q.settle(s, damaged)
	for i, c := range damaged {
		if _, ok := held[c.lease.ID]; ok && err == nil {
			q.told.Tell(letters[i])
		}
	}
	return got, err
}

// debounce is a job's as it is stored: without values for none.
type debounce struct {
	quiet, longest *int64
	edge           *int16
}

func (d debounce) value() queue.Debounce {
	if d.quiet == nil || d.longest == nil || d.edge == nil {
		return queue.Debounce{}
	}
	return queue.Debounce{Quiet: time.Duration(*d.quiet), MaxWait: time.Duration(*d.longest), Edge: queue.Edge(*d.edge)}
}

// restore makes a job's texts and times what they were.
func restore(receivedAt int64, job *queue.Job) {
	job.ReceivedAt = time.UnixMicro(receivedAt).UTC()
	for _, text := range []*string{&job.Provider, &job.EventID, &job.DeliveryID, &job.Type, &job.Resource, &job.Lane, &job.DeadOnArrival} {
		*text = unescape(*text)
	}
}

// from is the floor as a parameter.
func (l *line) from() pgtype.Timestamptz {
	if l.floor.IsZero() {
		return pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	}
	return pgtype.Timestamptz{Time: l.floor, Valid: true}
}

// handOut gives leases to those who wait, in the order in which they came, and takes back those whose takers have left.
func (q *Queue) handOut(s *session, l *line, leases []claimed) error {
	for len(leases) > 0 && len(l.waiting) > 0 {
		c := l.waiting[0]
		l.waiting = l.waiting[1:]
		n := min(c.max, len(leases))
		c.leases = make([]queue.Lease, n)
		for i := range c.leases {
			c.leases[i] = leases[i].Lease
		}
		if c.answer(nil) {
			leases = leases[n:]
		}
	}
	if len(leases) == 0 {
		return nil
	}
	ids, tokens, ats := make([]int64, len(leases)), make([]int64, len(leases)), make([]time.Time, len(leases))
	var updates resources
	for i, lease := range leases {
		updates.add(&lease.Job, escape(lease.Provider), escape(lease.Resource))
		ids[i], tokens[i], ats[i] = lease.ID, lease.Token, lease.was
	}
	l.full = time.Time{} // they are before the floor
	return s.do(func(ctx context.Context, conn *pgx.Conn) error {
		return updates.query(ctx, conn, q.sql.lockRows, q.sql.giveBack, []any{ids, tokens, ats}, func(rows pgx.Rows) error {
			rows.Close()
			return rows.Err()
		})
	})
}

// peek finds how long nothing more of a lane can be leased, but for what comes: 0 if something can. The answer grows with each peek, up to maxPause.
func (q *Queue) peek(s *session, l *line) (time.Duration, error) {
	var now time.Time
	var next *time.Time
	err := s.do(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, q.sql.peek, l.name, l.from()).Scan(&now, &next)
	})
	if err != nil {
		return 0, err
	}
	l.floor = now.Add(-floorSlack)
	l.pause = min(max(2*l.pause, minPause), maxPause)
	if next == nil {
		return l.pause, nil
	}
	return min(max(next.Sub(now), 0), l.pause), nil
}
