package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue"
)

// outKey is a lease that this handle gave out.
type outKey struct {
	id    int64
	token int64
}

// held is what is needed to end it without a question.
type held struct {
	state state
	reply string
}

// Receive implements queue.Queue. It may return fewer jobs than are due, to bound the memory that their payloads take.
func (q *Queue) Receive(ctx context.Context, name string, max int) ([]queue.Lease, error) {
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
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(q.closing, func() { cancel(queue.ErrClosed) })()
	leases, err := q.receive(ctx, q.lane(name), min(max, maxPull))
	if err == nil {
		return leases, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return nil, fmt.Errorf("receive: %w", err)
}

// How often, and after what pause, a consumer that does not answer is asked again.
const (
	nobodyTries = 50
	nobodyPause = 20 * time.Millisecond
)

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *Queue) receive(ctx context.Context, l *lane, max int) ([]queue.Lease, error) {
	for tries := 0; ; {
		if err := l.open(ctx, q.link); err != nil {
			return nil, err
		}
		deliveries, err := q.pull(ctx, l, max)
		if errors.Is(err, errAgain) {
			continue
		}
		if errors.Is(err, errNobody) && tries < nobodyTries {
			tries++
			if pause(ctx, nobodyPause) == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		leases, err := q.claim(ctx, deliveries)
		if err != nil || len(leases) > 0 {
			return leases, err
		}
	}
}

// claim turns deliveries into leases, where the states of the jobs allow it. A job that nobody touched before is leased without a look, under the
// condition that this is so.
func (q *Queue) claim(ctx context.Context, deliveries []delivery) ([]queue.Lease, error) {
	var candidates []*candidate
	look := make([]delivery, 0, len(deliveries))
	for _, d := range unique(deliveries) {
		c, ok := fresh(d)
		if !ok {
			look = append(look, d)
			continue
		}
		candidates = append(candidates, c)
	}
	looked, err := q.look(ctx, look)
	if err == nil {
		candidates = append(looked, candidates...) // what comes again is older
		err = q.loadJobs(ctx, candidates)
	}
	if err != nil {
		for _, d := range deliveries {
			q.later(d.msg.Reply, 0)
		}
		return nil, err
	}
	if err := q.lease(ctx, candidates); err != nil {
		return nil, err // the deliveries come again after ackWait, if nobody knows whether they were leased
	}
	return q.granted(ctx, candidates)
}

// unique drops what was delivered more than once in one request: of one job the last delivery counts, and two changes of it cannot be in one batch.
func unique(deliveries []delivery) []delivery {
	last := make(map[string]int, len(deliveries))
	for i, d := range deliveries {
		last[d.hash] = i
	}
	if len(last) == len(deliveries) {
		return deliveries
	}
	out := make([]delivery, 0, len(last))
	for i, d := range deliveries {
		if last[d.hash] == i {
			out = append(out, d)
		}
	}
	return out
}

// candidate is a job on its way from a delivery to a lease.
type candidate struct {
	delivery
	before   state // seq 0: there was none
	job      queue.Job
	damaged  error
	id       int64
	deadline int64
	requeue  bool
	entry    *entry
}

// fresh makes a candidate of a message that was not delivered before. A job then has no state, and one that was made ready again has that from the batch in
// which it was.
func fresh(d delivery) (*candidate, bool) {
	if d.repeated {
		return nil, false
	}
	c := &candidate{delivery: d}
	if d.again {
		before, err := decodeState(d.msg.Data, d.seq-1)
		if err != nil {
			return nil, false
		}
		c.before = before
	}
	return c, true
}

// look decides by the states of the jobs what becomes of deliveries that may be out of date.
func (q *Queue) look(ctx context.Context, deliveries []delivery) ([]*candidate, error) {
	if len(deliveries) == 0 {
		return nil, nil
	}
	filters := make([]string, 0, len(deliveries))
	for _, d := range deliveries {
		filters = append(filters, q.subjects.state(d.hash))
	}
	messages, err := q.link.last(ctx, filters)
	if err != nil {
		return nil, err
	}
	states := make(map[string]state, len(messages))
	for _, m := range messages {
		s, err := decodeState(m.data, m.seq)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", m.subject, err)
		}
		_, hash, _ := q.subjects.split(m.subject)
		states[hash] = s
	}
	var candidates []*candidate
	now := q.clock.now()
	for _, d := range deliveries {
		s, known := states[d.hash]
		switch {
		case known && (s.kind == done || s.kind == dead || s.carrier != d.seq), !known && d.again:
			q.ack(d.msg) // the acknowledgement was lost, or another message brings the job now
		case known && s.at > now: // a delay or a lease that is not over
			q.later(d.msg.Reply, micro(s.at-now))
		default:
			candidates = append(candidates, &candidate{delivery: d, before: s, requeue: d.backlog})
		}
	}
	return candidates, nil
}

func micro(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// loadJobs fills in the jobs: from the message, or from the stream.
func (q *Queue) loadJobs(ctx context.Context, candidates []*candidate) error {
	missing := make(map[string]*candidate)
	var filters []string
	for _, c := range candidates {
		switch {
		case c.requeue:
		case c.again:
			missing[c.hash] = c
			filters = append(filters, q.subjects.anyJob(c.hash))
		default:
			c.id = int64(c.seq)
			c.job, c.damaged = decodeJob(c.msg.Data)
		}
	}
	jobs, err := q.link.last(ctx, filters)
	if err != nil {
		return err
	}
	for _, m := range jobs {
		_, hash, _ := q.subjects.split(m.subject)
		if c := missing[hash]; c != nil {
			c.id = int64(m.seq)
			c.job, c.damaged = decodeJob(m.data)
		}
	}
	for _, c := range missing {
		if c.id == 0 {
			c.damaged = fmt.Errorf("%w: the job is gone", errDamaged)
		}
	}
	return nil
}

// lease writes the leases of all candidates in one operation. If its caller leaves meanwhile the jobs are given back: nobody would work on them until the leases lapse.
func (q *Queue) lease(ctx context.Context, candidates []*candidate) error {
	if len(candidates) == 0 {
		return nil
	}
	entries := make([]*entry, len(candidates))
	for i, c := range candidates {
		c.entry = q.change(c.job.Lane, c.hash, c.before.seq)
		c.entry.build = func(now int64) []message { return q.leaseMessages(c, now) }
		if !c.requeue {
			c.entry.count = func(t tally) { t.change(c.job.Lane, func(l *laneTally) { l.lease(c.deadline, 1) }) }
		}
		entries[i] = c.entry
	}
	o := newOperation(entries...)
	o.undo = func() *operation { return q.giveBack(candidates) }
	return q.writer.do(ctx, o)
}

// leaseMessages is the lease, or for a job that became due while others wait its place at the end of their line: the server delivers again before it delivers
// anew, and those that wait were due before.
func (q *Queue) leaseMessages(c *candidate, now int64) []message {
	if c.requeue {
		next := (&state{kind: waiting, attempt: c.before.attempt, at: c.before.at, reason: c.before.reason}).encode()
		return []message{{q.subjects.state(c.hash), next}, {q.readyLike(c.msg.Subject), next}}
	}
	c.deadline = now + q.opts.Lease.Microseconds()
	next := state{kind: leased, attempt: c.before.attempt + 1, at: c.deadline, carrier: c.seq}
	return []message{{q.subjects.state(c.hash), next.encode()}}
}

// readyLike is the subject that makes a job ready again, from the one of either of its messages.
func (q *Queue) readyLike(subject string) string { return subject[:len(subject)-1] + "1" }

// giveBack makes jobs wait again as if they had not been leased, but for the token.
func (q *Queue) giveBack(candidates []*candidate) *operation {
	var entries []*entry
	var replies []string
	for _, c := range candidates {
		switch {
		case c.entry.lost || c.entry.seq == 0: // nothing happened
			q.later(c.msg.Reply, 0)
			continue
		case c.requeue:
			q.ack(c.msg)
			continue
		}
		replies = append(replies, c.msg.Reply)
		e := q.change(c.job.Lane, c.hash, c.entry.seq)
		e.build = func(now int64) []message {
			next := state{kind: waiting, attempt: c.before.attempt, at: max(c.before.at, 0), carrier: c.seq}
			return []message{{q.subjects.state(c.hash), next.encode()}}
		}
		e.count = func(t tally) { t.change(c.job.Lane, func(l *laneTally) { l.lease(c.deadline, -1) }) }
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil
	}
	o := newOperation(entries...)
	o.then = func() {
		for _, reply := range replies {
			q.later(reply, 0)
		}
	}
	return o
}

// granted gives out what was leased, and sets the time at which the message of each comes again.
func (q *Queue) granted(ctx context.Context, candidates []*candidate) ([]queue.Lease, error) {
	leases := make([]queue.Lease, 0, len(candidates))
	for _, c := range candidates {
		switch {
		case c.entry.lost: // somebody else changed the job: the message comes again, and its state is looked at
			q.later(c.msg.Reply, 0)
			continue
		case c.requeue:
			q.ack(c.msg)
			continue
		}
		lease := queue.Lease{Job: c.job, ID: c.id, Token: int64(c.entry.seq), Attempt: c.before.attempt + 1, Deadline: q.clock.here(c.deadline)}
		q.later(c.msg.Reply, max(micro(c.deadline-q.clock.now()), time.Millisecond))
		after := state{kind: leased, attempt: lease.Attempt, at: c.deadline, token: c.entry.seq, carrier: c.seq, seq: c.entry.seq}
		if c.damaged != nil {
			if err := q.bury(ctx, c, after); err != nil {
				return nil, err
			}
			continue
		}
		q.hold(lease, after, c.msg)
		leases = append(leases, lease)
	}
	return leases, nil
}

// bury makes a dead letter of a job that cannot be read: nobody can ever work on it, and it must not stand in the way of the others.
func (q *Queue) bury(ctx context.Context, c *candidate, s state) error {
	e := q.settleEntry(settlement{lane: c.job.Lane, hash: c.hash, ready: q.readyLike(c.msg.Subject), was: s, outcome: queue.Dead(c.damaged.Error())})
	if err := q.writer.do(ctx, newOperation(e)); err != nil {
		return err
	}
	if !e.lost {
		q.ack(c.msg)
	}
	return nil
}

// hold remembers a lease that was given out, and from time to time forgets those that lapsed.
func (q *Queue) hold(lease queue.Lease, s state, msg *client.Msg) {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.out[outKey{lease.ID, lease.Token}] = &held{state: s, reply: msg.Reply}
	if now.Sub(q.swept) < time.Minute {
		return
	}
	q.swept = now
	for key, h := range q.out {
		if h.state.at < q.clock.now()-time.Minute.Microseconds() {
			delete(q.out, key)
		}
	}
}

// stateOf reads the state of a job; kind 0 is that it has none.
func (q *Queue) stateOf(ctx context.Context, hash string) (state, error) {
	messages, err := q.link.last(ctx, []string{q.subjects.state(hash)})
	if err != nil || len(messages) == 0 {
		return state{}, err
	}
	return decodeState(messages[0].data, messages[0].seq)
}
