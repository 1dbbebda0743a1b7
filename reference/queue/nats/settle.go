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
	reply, _, err := q.underLease(ctx, lease, func(was state) *entry {
		return q.settleEntry(settlement{lane: lease.Lane, hash: hash, ready: q.subjects.ready(hash, laneToken(lease.Lane)), was: was, outcome: outcome})
	})
	if err != nil {
		return fmt.Errorf("settle event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	q.drop(outKey{lease.ID, lease.Token})
	switch {
	case reply == "":
	case outcome.IsRetry() && outcome.After() > 0:
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

// settlement is how a lease ends.
type settlement struct {
	lane, hash string
	ready      string // the subject that makes the job ready again
	was        state
	outcome    queue.Outcome
}

func (q *Queue) settleEntry(s settlement) *entry {
	e := q.change(s.lane, s.hash, s.was.seq)
	e.build = func(now int64) []message {
		if now > s.was.at {
			return nil // lapsed, whether or not anybody else has the job
		}
		return q.settleMessages(s, now)
	}
	e.count = func(t tally) {
		t.change(s.lane, func(l *laneTally) {
			l.lease(s.was.at, -1)
			switch {
			case s.outcome.IsDone():
				l.Done++
			case s.outcome.IsDead():
				l.Dead++
			}
		})
	}
	return e
}

func (q *Queue) settleMessages(s settlement, now int64) []message {
	next := state{attempt: s.was.attempt, at: now, carrier: s.was.carrier, reason: clip(s.outcome.Reason())}
	subject := q.subjects.state(s.hash)
	switch {
	case s.outcome.IsDone():
		next.kind = done
		return []message{{subject, next.encode()}}
	case s.outcome.IsDead():
		next.kind = dead
		body := next.encode()
		return []message{{subject, body}, {q.subjects.dead(s.hash), body}}
	case s.outcome.After() > 0:
		next.kind, next.at = waiting, now+(s.outcome.After()+time.Microsecond-1).Microseconds()
		return []message{{subject, next.encode()}}
	default: // due at once: to the end of the line
		next.kind, next.carrier = waiting, 0
		body := next.encode()
		return []message{{subject, body}, {s.ready, body}}
	}
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
	hash := hashOf(lease.Provider, lease.EventID)
	var next state
	reply, e, err := q.underLease(ctx, lease, func(was state) *entry {
		e := q.change(lease.Lane, hash, was.seq)
		e.build = func(now int64) []message {
			if now > was.at {
				return nil
			}
			next = was
			next.at = now + d.Microseconds()
			return []message{{q.subjects.state(hash), next.encode()}}
		}
		e.count = func(t tally) {
			t.change(lease.Lane, func(l *laneTally) { l.lease(was.at, -1); l.lease(next.at, 1) })
		}
		return e
	})
	if err != nil {
		return lease, fmt.Errorf("extend the lease of event %q of %s: %w", lease.EventID, lease.Provider, err)
	}
	next.seq = e.seq
	if reply != "" {
		q.later(reply, d)
		q.mu.Lock()
		if h := q.out[outKey{lease.ID, lease.Token}]; h != nil {
			h.state = next
		}
		q.mu.Unlock()
	}
	lease.Deadline = q.clock.here(next.at)
	return lease, nil
}
