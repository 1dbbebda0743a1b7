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
	look := make([]*candidate, 0, len(deliveries))
	for _, d := range unique(deliveries) {
		c := open(d)
		if !c.untouched() {
			look = append(look, c)
			continue
		}
		candidates = append(candidates, c)
	}
	looked, err := q.look(ctx, look)
	if err == nil {
		candidates = q.fit(append(looked, candidates...)) // what comes again is older
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

// fit gives back what would make the batch larger than a server takes. It comes again at once.
func (q *Queue) fit(candidates []*candidate) []*candidate {
	messages := 0
	for i, c := range candidates {
		if messages += 2; c.before.row != "" {
			messages += maxDecided - 2
		}
		if messages > maxBatchMessages {
			for _, c := range candidates[i:] {
				q.later(c.msg.Reply, 0)
			}
			return candidates[:i]
		}
	}
	return candidates
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
	before  state // seq 0: there was none
	job     queue.Job
	damaged error
	id      int64
	requeue bool
	entry   *entry
	// after is what the job's state became.
	after state
	// wait is for how many microseconds a job of a row has to wait, 0 if it has given way.
	wait int64
}

// open makes a candidate of a delivery, with what stands in its message: the job, or for one that was made ready again its state from the batch in which it was. Of one that was delivered
// before it does not matter yet.
func open(d delivery) *candidate {
	c := &candidate{delivery: d}
	if d.repeated {
		return c
	}
	if !d.again {
		c.unpack()
		return c
	}
	before, err := decodeState(d.msg.Data, d.seq-1)
	if err == nil {
		c.before = before
	}
	return c
}

// unpack reads the job in the message.
func (c *candidate) unpack() {
	c.id = int64(c.seq)
	c.job, c.damaged = decodeJob(c.msg.Data)
}

// untouched reports that the message says all about the job: it was not delivered before, and the job is of no row, in which others might be.
func (c *candidate) untouched() bool {
	if c.repeated || c.again && c.before.seq == 0 {
		return false
	}
	return c.before.row == "" && rowOf(&c.job) == ""
}

// look decides by the states of the jobs what becomes of deliveries that may be out of date.
func (q *Queue) look(ctx context.Context, deliveries []*candidate) ([]*candidate, error) {
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
	rows := make(map[string]bool)
	now := q.clock.now()
	for _, d := range deliveries {
		s, known := states[d.hash]
		gone, wait := d.stale(s, known, now)
		switch {
		case gone:
			q.ack(d.msg)
		case wait > 0:
			q.later(d.msg.Reply, micro(wait))
		case rows[s.row]: // two of one row cannot be in one batch
			q.later(d.msg.Reply, 0)
		default:
			rows[s.row] = s.row != ""
			d.before, d.requeue = s, d.repeated && d.backlog
			candidates = append(candidates, d)
		}
	}
	return candidates, nil
}

// stale decides by a job's state what becomes of a delivery: it is gone if it need not come again, and else comes again after a wait in microseconds, or with 0 is looked at further.
func (d *delivery) stale(s state, known bool, now int64) (gone bool, wait int64) {
	switch {
	case known && s.seq+1 < d.seq, !known && d.again: // the answer is older than the message, in whose batch the state changed: it is one of a server that lags behind
		return false, ackWait.Microseconds() / 10
	case known && (s.kind == done || s.kind == dead || s.kind == dropped || s.carrier != d.seq):
		return true, 0 // the acknowledgement was lost, or another message brings the job now
	case known && s.at > now: // a delay, a window or a lease that is not over
		return false, s.at - now
	}
	return false, 0
}

func micro(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// loadJobs fills in the jobs: from the message, or from the stream.
func (q *Queue) loadJobs(ctx context.Context, candidates []*candidate) error {
	missing := make(map[string]*candidate)
	var filters []string
	for _, c := range candidates {
		switch {
		case c.requeue && c.before.row == "":
		case c.again:
			missing[c.hash] = c
			filters = append(filters, q.subjects.anyJob(c.hash))
		case c.id == 0:
			c.unpack()
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
		c.entry = q.leaseEntry(c)
		entries[i] = c.entry
	}
	o := newOperation(entries...)
	o.undo = func() *operation { return q.giveBack(candidates) }
	return q.writer.do(ctx, o)
}

// leaseEntry leases a job, or gives one that became due while others wait its place at the end of their line: the server delivers again before it delivers anew, and those that wait
// were due before.
func (q *Queue) leaseEntry(c *candidate) *entry {
	if c.before.row != "" {
		return q.about(ref{c.hash, c.job.Lane}, c.before.row, func(s *sheet) { c.decide(s, q.opts.Lease) }).entry()
	}
	e := q.change(c.hash, c.before)
	e.most = 2
	e.build = func(now int64) []message {
		subject := q.subjects.state(c.hash)
		if c.requeue {
			next := c.before.requeued()
			body := next.encode()
			return []message{{subject: subject, data: body}, {subject: q.readyLike(c.msg.Subject), data: body}}
		}
		c.after = c.before.granted(now, q.opts.Lease, c.seq)
		return []message{{subject: subject, data: c.after.encode()}}
	}
	if !c.requeue {
		e.count = func(t tally) { t.account(c.job.Lane, c.after.since, c.before, c.after) }
	}
	return e
}

// decide leases a job of a row, if its state still is what was seen, and what else is in the row allows it.
func (c *candidate) decide(s *sheet, d time.Duration) {
	c.after, c.wait = state{}, 0
	job := s.named(ref{c.hash, c.job.Lane})
	was := s.state(c.hash)
	if was.seq != c.before.seq {
		c.wait = 1 // it is looked at again
		return
	}
	may, wait := s.mayLease(job)
	c.wait = wait
	switch {
	case may && c.requeue && s.row.pending == job: // its window stays as it was
		s.put(job, was.requeued())
		s.wake[c.hash] = true
	case may && c.requeue:
		s.returned(job, was.requeued(), true)
	case may:
		s.grant(job, c.seq, d)
		c.after = s.next[c.hash]
	}
}

// readyLike is the subject that makes a job ready again, from the one of either of its messages.
func (q *Queue) readyLike(subject string) string { return subject[:len(subject)-1] + "1" }

// giveBack makes jobs wait again as if they had not been leased, but for the token.
func (q *Queue) giveBack(candidates []*candidate) *operation {
	var entries []*entry
	var replies []string
	for _, c := range candidates {
		if !c.leased() {
			q.dismiss(c)
			continue
		}
		replies = append(replies, c.msg.Reply)
		c.after.seq, c.after.token = c.entry.seq, c.entry.seq
		entries = append(entries, q.giveBackEntry(c))
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

func (q *Queue) giveBackEntry(c *candidate) *entry {
	if c.before.row != "" {
		job := ref{c.hash, c.job.Lane}
		return q.about(job, c.before.row, func(s *sheet) {
			if was := s.state(c.hash); was.seq == c.after.seq {
				s.returned(s.named(job), was.ungiven(s.now), false)
			}
		}).entry()
	}
	e := q.change(c.hash, c.after)
	var next state
	e.build = func(int64) []message {
		next = c.after.ungiven(c.before.at)
		return []message{{subject: q.subjects.state(c.hash), data: next.encode()}}
	}
	e.count = func(t tally) { t.account(c.job.Lane, c.after.since, c.after, next) }
	return e
}

// leased reports that the candidate got its lease.
func (c *candidate) leased() bool { return !c.entry.lost && c.after.kind == leased }

// dismiss answers the delivery of a job that was not leased.
func (q *Queue) dismiss(c *candidate) {
	switch {
	case c.entry.err != nil: // somebody has to look at what cannot be read; meanwhile it must not come all the time
		q.later(c.msg.Reply, ackWait)
	case c.wait > 0:
		q.later(c.msg.Reply, micro(c.wait))
	case c.entry.lost || c.entry.seq == 0: // somebody else changed the job, or nothing happened: it comes again, and its state is looked at
		q.later(c.msg.Reply, 0)
	default:
		q.ack(c.msg) // it stands in line again, or has given way
	}
}

// granted gives out what was leased, and sets the time at which the message of each comes again.
func (q *Queue) granted(ctx context.Context, candidates []*candidate) ([]queue.Lease, error) {
	leases := make([]queue.Lease, 0, len(candidates))
	for _, c := range candidates {
		if !c.leased() {
			q.dismiss(c)
			continue
		}
		c.after.seq, c.after.token = c.entry.seq, c.entry.seq
		lease := queue.Lease{Job: c.job, ID: c.id, Token: int64(c.entry.seq), Attempt: c.after.attempt, Deadline: q.clock.here(c.after.at)}
		q.later(c.msg.Reply, max(micro(c.after.at-q.clock.now()), time.Millisecond))
		if c.damaged != nil {
			if err := q.bury(ctx, c); err != nil {
				return nil, err
			}
			continue
		}
		q.hold(lease, c.after, c.msg)
		leases = append(leases, lease)
	}
	return leases, nil
}

// bury makes a dead letter of a job that cannot be read: nobody can ever work on it, and it must not stand in the way of the others.
func (q *Queue) bury(ctx context.Context, c *candidate) error {
	end := ending{ref: ref{c.hash, c.job.Lane}, ready: q.readyLike(c.msg.Subject), token: c.after.token, outcome: queue.Dead(c.damaged.Error())}
	e := q.settleEntry(&end, c.after)
	if err := q.writer.do(ctx, newOperation(e)); err != nil {
		return err
	}
	if !e.lost {
		q.ack(c.msg)
		q.told.Tell(queue.DeadLetter{Job: c.job, Reason: end.outcome.Reason(), Attempts: c.after.attempt, At: time.UnixMicro(q.clock.now()).UTC()})
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
