package nats

import (
	"encoding/json"
	"maps"
	"slices"

	"floodproof/reference/queue"
)

// tally is what one writer has done to the counts of the lanes. It goes along in every batch of the writer, as a message that replaces the one before, and so
// is right whatever becomes of the batch. The queue's counts are the sum over all writers that there ever were.
type tally map[string]laneTally

// laneTally is the part of one lane. Numbers may be negative: what one writer leased another may settle.
type laneTally struct {
	Stored int64 `json:"stored,omitempty"`
	Done   int64 `json:"done,omitempty"`
	Dead   int64 `json:"dead,omitempty"`
	// Leases counts the leases that are out by their deadlines in microseconds, so that whoever reads it can tell those that lapsed.
	Leases map[int64]int64 `json:"leases,omitempty"`
}

// clone copies the tally without the leases that ended a while ago: nobody counts them any more.
func (t tally) clone(now int64) tally {
	out := make(tally, len(t))
	for lane, l := range t {
		l.Leases = maps.Clone(l.Leases)
		maps.DeleteFunc(l.Leases, func(deadline, n int64) bool { return n == 0 || deadline < now-stale })
		out[lane] = l
	}
	return out
}

// stale is for how many microseconds a lapsed lease stays in a tally, for a reader whose idea of the server's clock is a little behind.
const stale = 1_000_000

func (t tally) change(lane string, change func(*laneTally)) {
	l := t[lane]
	change(&l)
	t[lane] = l
}

// lease adds n to the leases that end at a deadline.
func (l *laneTally) lease(deadline, n int64) {
	if l.Leases == nil {
		l.Leases = make(map[int64]int64)
	}
	l.Leases[deadline] += n
}

// account counts the change of a job from one state to another, at a time.
func (t tally) account(lane string, now int64, was, next state) {
	t.change(lane, func(l *laneTally) {
		if was.kind == leased && was.at >= now { // one that lapsed is not counted any more
			l.lease(was.at, -1)
		}
		if next.kind == leased {
			l.lease(next.at, 1)
		}
		for k, n := range map[kind]int64{was.kind: -1, next.kind: 1} {
			if was.kind == next.kind {
				break
			}
			switch k {
			case done:
				l.Done += n
			case dead:
				l.Dead += n
			case dropped:
				l.Stored -= n
			case waiting, leased:
			}
		}
	})
}

func (t tally) encode() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // maps of strings and numbers can always be written
	}
	return b
}

// add adds another writer's tally.
func (t tally) add(b []byte) error {
	var other tally
	if err := json.Unmarshal(b, &other); err != nil {
		return err
	}
	for lane, o := range other {
		t.change(lane, func(l *laneTally) {
			l.Stored, l.Done, l.Dead = l.Stored+o.Stored, l.Done+o.Done, l.Dead+o.Dead
			for deadline, n := range o.Leases {
				l.lease(deadline, n)
			}
		})
	}
	return nil
}

// depth is what the sum of all tallies says at a time.
func (t tally) depth(now int64) queue.Depth {
	var d queue.Depth
	for _, lane := range slices.Sorted(maps.Keys(t)) {
		l := t[lane]
		out := queue.LaneDepth{Lane: lane, Done: l.Done, Dead: l.Dead}
		for deadline, n := range l.Leases {
			if deadline >= now {
				out.Leased += n
			}
		}
		out.Waiting = l.Stored - l.Done - l.Dead - out.Leased
		d.Waiting, d.Leased, d.Dead, d.Done = d.Waiting+out.Waiting, d.Leased+out.Leased, d.Dead+out.Dead, d.Done+out.Done
		d.Lanes = append(d.Lanes, out)
	}
	return d
}
