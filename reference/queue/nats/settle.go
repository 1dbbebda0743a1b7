package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"floodproof/reference/queue"
)

// Settle implements queue.Queue. JetStream itself would take an acknowledgement however late it comes; what counts here is the job's state, which changes only if the
// lease is the last thing that happened to the job, and only before its deadline by the server's clock.
func (q *Queue) Settle(ctx context.Context, lease queue.Lease, outcome queue.Outcome) error {
	if err := q.begin(); err != nil {
		return err
	}
	defer q.calls.Done()
	if !outcome.IsDone() && !outcome.IsRetry() && !outcome.IsDead() {
		return errors.New("settle: the outcome is the zero value: use Done, Retry or Dead")
	}
	hash := hashOf(lease.Provider, lease.EventID)
	end := ending{ref: ref{hash, lease.Lane}, ready: q.subjects.ready(hash, laneToken(lease.Lane)), token: uint64(lease.Token), outcome: outcome}
	reply, _, err := q.underLease(ctx, lease, func(was state) *entry { return q.settleEntry(&end, was) })
	if err != nil {
		return fmt.Errorf("settle event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	q.drop(outKey{lease.ID, lease.Token})
	switch {
	case reply == "":
	case end.next.kind == waiting && outcome.After() > 0:
		q.later(reply, outcome.After())
	default:
		_ = q.link.conn.Publish(reply, []byte("+ACK"))
	}
	return nil
}

// underLease makes a change under a lease, and returns where its delivery is answered, if this handle gave it out. A lease of another handle, or one that another
// handle prolonged, is found by a look at the state.
func (q *Queue) underLease(ctx context.Context, lease queue.Lease, change func(state) *entry) (reply string, after *entry, err error) {
	key := outKey{lease.ID, lease.Token}
	q.mu.Lock()
	h, ours := q.out[key]
	var was state
	if ours {
		was, reply = h.state, h.reply
	}
	q.mu.Unlock()
	for look := !ours; ; look = true {
		if look {
			if was, err = q.stateOf(ctx, hashOf(lease.Provider, lease.EventID)); err != nil {
				return "", nil, err
			}
			if was.kind != leased || was.token != uint64(lease.Token) {
				break
			}
		}
		if was.at < q.clock.now() {
			break
		}
		e := change(was)
		if err := q.writer.do(ctx, newOperation(e)); err != nil {
			return "", nil, err
		}
		if e.err != nil {
			return "", nil, e.err
		}
		if !e.lost {
			return reply, e, nil
		}
	}
	q.drop(key)
	return "", nil, queue.ErrLeaseLost
}

func (q *Queue) drop(key outKey) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.out, key)
}

// ending is how a lease ends.
type ending struct {
	ref
	ready   string // the subject that makes the job ready again
	token   uint64
	outcome queue.Outcome

	// next is the job's state after it, once that is stored.
	next state
}

// settleEntry ends a lease. The job of a row may give way to a newer one then, or set that free: what is in the row decides.
func (q *Queue) settleEntry(end *ending, was state) *entry {
	if was.row != "" {
		return q.about(end.ref, was.row, func(s *sheet) { s.settle(end) }).entry()
	}
	e := q.change(end.hash, was)
	e.most = 2
	e.build = func(now int64) []message {
		if now > was.at {
			return nil // lapsed, whether or not anybody else has the job
		}
		end.next = was.settled(now, end.outcome)
		return q.settleMessages(end)
	}
	e.count = func(t tally) { t.account(end.lane, was.at, was, end.next) }
	return e
}

func (q *Queue) settleMessages(end *ending) []message {
	subject, next := q.subjects.state(end.hash), &end.next
	switch {
	case next.kind == dead:
		body := next.encode()
		return []message{{subject: subject, data: body}, {subject: q.subjects.dead(end.hash), data: body}}
	case next.kind == waiting && end.outcome.After() <= 0: // due at once: to the end of the line
		next.carrier = 0
		body := next.encode()
		return []message{{subject: subject, data: body}, {subject: end.ready, data: body}}
	}
	return []message{{subject: subject, data: next.encode()}}
}

// settle ends the lease of a job of a row, if it is in force.
func (s *sheet) settle(end *ending) {
	was := s.state(end.hash)
	if was.kind != leased || was.token != end.token || s.now > was.at {
		return
	}
	job, next := s.named(end.ref), was.settled(s.now, end.outcome)
	if next.kind == waiting {
		s.returned(job, next, end.outcome.After() <= 0)
	} else {
		s.put(job, next)
		s.released(job)
	}
	end.next = s.next[end.hash]
}

// change is an entry that follows a state of a job.
func (q *Queue) change(hash string, was state) *entry {
	e := &entry{keys: []string{"s" + hash}, filter: q.subjects.state(hash), expect: was.seq, bytes: 1024, most: 1, count: func(tally) {}}
	if was.row != "" {
		e.keys = append(e.keys, "r"+was.row)
	}
	return e
}

// Extend implements queue.Extender.
func (q *Queue) Extend(ctx context.Context, lease queue.Lease, d time.Duration) (queue.Lease, error) {
	if err := q.begin(); err != nil {
		return lease, err
	}
	defer q.calls.Done()
	if d <= 0 {
		return lease, fmt.Errorf("extend a lease by %v: use more than 0", d)
	}
	next, reply, err := q.prolong(ctx, lease, func(was state, now int64) state {
		was.at = now + d.Microseconds()
		return was
	})
	if err != nil {
		return lease, fmt.Errorf("extend the lease of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	if reply != "" {
		q.later(reply, d)
	}
	lease.Deadline = q.clock.here(next.at)
	return lease, nil
}

// prolong changes the state of a leased job, which stays leased, with the same token. It returns where its delivery is answered, as underLease does.
func (q *Queue) prolong(ctx context.Context, lease queue.Lease, change func(was state, now int64) state) (next state, reply string, err error) {
	hash := hashOf(lease.Provider, lease.EventID)
	reply, e, err := q.underLease(ctx, lease, func(was state) *entry {
		e := q.change(hash, was)
		e.build = func(now int64) []message {
			if now > was.at {
				return nil
			}
			next = change(was, now)
			return []message{{subject: q.subjects.state(hash), data: next.encode()}}
		}
		e.count = func(t tally) { t.account(lease.Lane, was.at, was, next) }
		return e
	})
	if err != nil {
		return state{}, "", err
	}
	next.seq = e.seq
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.out[outKey{lease.ID, lease.Token}]; h != nil && h.state.seq < next.seq {
		h.state = next
	}
	return next, reply, nil
}
