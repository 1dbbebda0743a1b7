package queue

import "sync"

// DeadTeller is a queue that makes dead letters by itself (optional), of jobs that it finds damaged: no worker ever sees those, and nobody but the queue can tell of them.
type DeadTeller interface {
	// TellDead has fn called with each such letter that this handle makes, after it is on the list, and at once with those that it has made since it was opened. fn must not block, nor call
	// the queue. It replaces the fn of an earlier call. What another process finds is told there, or, if that process has not asked, nowhere.
	TellDead(fn func(DeadLetter))
}

// maxUntold bounds what a Teller keeps for somebody who has not asked yet.
const maxUntold = 1000

// Teller is a DeadTeller for backends to use. The zero value keeps what it is told until somebody asks, the first thousand. It is safe for concurrent use.
type Teller struct {
	mu     sync.Mutex
	fn     func(DeadLetter)
	untold []DeadLetter
}

// TellDead implements DeadTeller.
func (t *Teller) TellDead(fn func(DeadLetter)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fn = fn
	if fn == nil {
		return
	}
	for _, l := range t.untold {
		fn(l)
	}
	t.untold = nil
}

// Tell passes a letter on.
func (t *Teller) Tell(l DeadLetter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.fn != nil:
		t.fn(l)
	case len(t.untold) < maxUntold:
		t.untold = append(t.untold, l)
	}
}
