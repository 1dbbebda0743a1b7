package proxy

import "time"

// portions is in how many portions a second's bytes pass under a rate.
const portions = 100

// hold passes on what the conditions let pass, when they do, and keeps the rest. It returns nil when the conditions change, or when there are none and nothing is kept.
func (p *pump) hold(s *shape) error {
	for p.shape.Load() == s {
		if s.blackHole && !p.queue.isEmpty() {
			p.lost = true
			p.queue.clear()
		}
		next, err := p.send(s)
		if err != nil || s.isPlain() && p.queue.isEmpty() {
			return err
		}
		if err := p.receive(s, next); err != nil {
			return err
		}
	}
	return nil
}

// send writes all that may go now and returns when more may; never, if that is the zero time.
func (p *pump) send(s *shape) (next time.Time, err error) {
	for !p.queue.isEmpty() && !s.stall && p.shape.Load() == s {
		head, now := p.queue.head(), time.Now()
		if at := later(head.due(s), p.next); at.After(now) {
			return at, nil
		}
		if head.end != nil {
			return time.Time{}, p.finish(head.end)
		}
		cut, left := p.cutAhead(s, head)
		if cut != nil && left == 0 && cut.claimCut() {
			p.conn.cut(cut, p.dst)
			return time.Time{}, errOver
		}
		n, err := p.write(head.data[:p.portion(s, len(head.data), left)], head.begins)
		if n > 0 {
			head.begins = false
			p.queue.advance(n)
			p.pace(s, n, now)
		}
		if isDeadline(err) {
			return time.Time{}, nil
		}
		if err != nil {
			return time.Time{}, err
		}
		if cut != nil && int64(n) == left && cut.claimCut() {
			p.conn.cut(cut, p.dst)
			return time.Time{}, errOver
		}
	}
	return time.Time{}, nil
}

// portion is how many of n bytes may be written at once. left is how many lie before a cut, below 0 for no cut.
func (p *pump) portion(s *shape, n int, left int64) int {
	if s.slice > 0 {
		n = min(n, s.slice)
	}
	if s.rate > 0 {
		n = int(min(int64(n), max(1, s.rate/portions)))
	}
	if left > 0 {
		n = int(min(int64(n), left))
	}
	return n
}

// pace sets the time of the next write after n bytes. Time that was waited too long, because timers are coarse, is made up for, idle time is not.
func (p *pump) pace(s *shape, n int, now time.Time) {
	if s.rate == 0 && s.pause == 0 {
		return
	}
	p.next = later(p.next, now.Add(-time.Second/portions))
	if s.rate > 0 {
		p.next = p.next.Add(time.Duration(float64(n) / float64(s.rate) * float64(time.Second)))
	}
	if s.pause > 0 {
		p.next = later(p.next, now).Add(s.pause)
	}
}

// cutAhead is the cut that the head will meet first, and how many bytes of its reply may pass before it; nil and -1 without one.
func (p *pump) cutAhead(s *shape, head *parcel) (first *imposed, left int64) {
	left = -1
	reply, sent := p.replies, p.sent
	if head.begins {
		reply, sent = reply+1, 0
	}
	for _, c := range s.cutters {
		if reply-p.since[c] < max(1, c.Cut.Reply) || sent > c.Cut.Byte || c.isSpent() {
			continue
		}
		if first == nil || c.Cut.Byte-sent < left {
			first, left = c, c.Cut.Byte-sent
		}
	}
	return first, left
}

// receive reads one parcel, or waits until next if there is no room for one. It comes back early when the conditions change.
func (p *pump) receive(s *shape, next time.Time) error {
	if p.ended || p.queue.size >= p.conn.proxy.options.Buffer {
		return p.rest(next)
	}
	if !p.arm(s, next) {
		return nil
	}
	room := max(1, p.conn.proxy.options.Buffer-p.queue.size)
	n, err := p.src.Read(p.buf[:min(len(p.buf), room)])
	if n > 0 {
		p.take(s, parcel{data: p.buf[:n], begins: p.isTurn()})
	}
	if err != nil && !isDeadline(err) {
		p.ended = true
		p.take(s, parcel{end: err})
	}
	return nil
}

// arm sets the deadline of the next read, zero for none, unless the conditions have changed.
func (p *pump) arm(s *shape, until time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shape.Load() != s {
		return false
	}
	_ = p.src.SetReadDeadline(until) // On a closed connection the read fails.
	return true
}

// rest waits until a time, without end if that is zero, until the conditions change, or until the connection is ended.
func (p *pump) rest(until time.Time) error {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
		return nil
	case <-p.woken:
		return nil
	case <-p.conn.ctx.Done():
		return errOver
	}
}

// take puts a parcel into the queue, as of now, and counts it for the conditions that act on every byte.
func (p *pump) take(s *shape, part parcel) {
	part.arrived = time.Now()
	if s.jitter > 0 {
		part.lot = 2*p.rand.Float64() - 1
	}
	p.queue.add(part)
	for _, c := range s.shapers {
		if p.touched != s {
			p.conn.touch(c)
		}
		c.bytes.Add(int64(len(part.data)))
	}
	p.touched = s
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
