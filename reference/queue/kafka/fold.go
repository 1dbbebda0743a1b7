package kafka

import (
	"sync"
	"time"

	"floodproof/reference/queue/memory/state"
)

// fold is what the log says so far. Every handle that reads has one, and they are all alike at the same offset: nothing goes in but what stands in the log.
type fold struct {
	mu      sync.Mutex
	store   *state.Store
	clock   int64     // the log's: the latest instant of a frame
	seen    time.Time // when that was, by this handle's clock
	applied map[uint64]int64
	woken   map[string]chan struct{} // by lane: closed when something may be leased earlier
}

func newFold() *fold {
	f := &fold{store: state.New(0), applied: make(map[uint64]int64), woken: make(map[string]chan struct{})}
	f.store.Keep = true // payloads are not, for the log has them
	f.store.Woke = func(lane string) {
		if waiters := f.woken[lane]; waiters != nil {
			close(waiters)
			delete(f.woken, lane)
		}
	}
	return f
}

// apply does the commands of a frame, and returns what they answer if mine; repeated says that they were done before.
func (f *fold) apply(fr *frame, mine bool) (results []state.Result, repeated bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock, f.seen = max(f.clock, fr.clock), time.Now()
	if fr.number <= f.applied[fr.writer] {
		return nil, true
	}
	f.applied[fr.writer] = fr.number
	for i := range fr.commands {
		c := &fr.commands[i]
		if !mine && c.Op.Asks() {
			continue // it changes nothing
		}
		c.Place = placeOf(fr.offset, i)
		r := f.store.Apply(f.clock, c)
		if mine {
			results = append(results, r)
		}
	}
	return results, false
}

// due says whether something of a lane can be leased now, or when to look again: when the channel is closed, and after wait if that is not negative.
func (f *fold) due(lane string) (now bool, woken <-chan struct{}, wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.store.Next(lane)
	if ok {
		wait = time.Duration(at-f.clock)*time.Microsecond - time.Since(f.seen)
		if wait <= 0 {
			return true, nil, 0
		}
	} else {
		wait = -1
	}
	waiters := f.woken[lane]
	if waiters == nil {
		waiters = make(chan struct{})
		f.woken[lane] = waiters
	}
	return false, waiters, wait
}
