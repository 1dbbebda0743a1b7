package proxy

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Direction is the way that bytes take.
type Direction uint8

const (
	// Both ways.
	Both Direction = iota
	// Up is from the side that connected, the client, to the side that listens, the server.
	Up
	// Down is from the server to the client.
	Down
)

// String is "both", "up" or "down".
func (d Direction) String() string {
	switch d {
	case Up:
		return "up"
	case Down:
		return "down"
	default:
		return "both"
	}
}

// Admission is what happens to connections that come while a condition holds. The existing ones are left alone.
type Admission uint8

const (
	// Admit passes them on.
	Admit Admission = iota
	// Hang accepts them and does nothing more. They are passed on when the condition is lifted, with all that was sent meanwhile.
	Hang
	// ResetNew accepts them and resets them at once.
	ResetNew
	// Refuse closes the port, so that the kernel refuses them, and opens the same port at the lift. The proxy does not see whom this meets.
	Refuse
)

// Condition is one thing that is wrong with the network. The zero value is not valid: nothing would be wrong. Where several conditions hold, delays and
// pauses add up, the smallest rate and slice count, and the worst admission does.
type Condition struct {
	// Direction is the way whose bytes are concerned. Reset and New concern connections and ignore it; with HalfOpen it must be Up or Down.
	Direction Direction

	// Delay holds each byte back for so long after it arrived, ± an even share of Jitter, which is at most Delay. The order is kept.
	Delay, Jitter time.Duration
	// Rate is how many bytes pass in a second, 0 for no limit. They pass in portions of a hundredth of that.
	Rate int64
	// Slice is how many bytes are written at once, 0 for no limit; Pause is the time after each such write. Without Slice there is no Pause.
	Slice int
	Pause time.Duration
	// Stall lets nothing pass and loses nothing.
	Stall bool
	// BlackHole swallows everything, the end of the stream included. A connection that lost something is reset at the lift.
	BlackHole bool
	// Cut ends connections at a certain byte.
	Cut *Cut

	// Reset resets every connection that exists when the condition comes.
	Reset bool
	// HalfOpen makes the side that sends in Direction vanish from every connection that exists when the condition comes, as if its machine had lost power: its own
	// connection is reset, and the other side is not told, hears nothing more, and what it sends is swallowed, until it is reset at the lift. Connections that
	// come later are not concerned.
	HalfOpen bool
	// New is what happens to connections that come.
	New Admission
}

// Cut ends a connection when byte number Byte of a reply has passed, and before the next one does: with 0, before the first. By then the server has done what it was
// asked for, and the client never hears of it.
//
// A reply is what passes in the condition's direction after something passed in the other one. No protocol is understood, so that this fits every protocol
// whose sides take turns, such as HTTP/1.1, Redis and Postgres; where requests are pipelined, a reply may seem to begin in the middle of
// another. With direction Up, it is a request that is cut.
type Cut struct {
	// Byte is how many bytes of the reply pass.
	Byte int64
	// Reply says which reply of a connection is cut, counted from 1 among those that begin after the condition came; 0 means 1. If it is
	// shorter than Byte, the next one that is long enough is cut.
	Reply int64
	// Times is how many connections are cut, 0 for no limit.
	Times int64
	// Reset ends the connection with a reset. Otherwise it ends as after the server's death: the client reads Byte bytes and then the end. A reset
	// may overtake bytes for which the client's window had no room, and systems other than Linux throw away what the client had not read.
	Reset bool
}

// Met is what a condition met.
type Met struct {
	// Connections is how many connections were concerned: those of which a byte was held back, slowed or swallowed, those that were cut, reset, accepted to hang or
	// left half open.
	Connections int64
	// Bytes is how many bytes were held back, slowed or swallowed.
	Bytes int64
	// Cuts is how many connections were cut.
	Cuts int64
}

// imposed is a condition in place.
type imposed struct {
	Condition

	connections, bytes, cuts atomic.Int64
}

func (i *imposed) met() Met {
	return Met{Connections: i.connections.Load(), Bytes: i.bytes.Load(), Cuts: i.cuts.Load()}
}

// claimCut reports whether one more connection may be cut, and counts it.
func (i *imposed) claimCut() bool {
	for {
		n := i.cuts.Load()
		if i.Cut.Times > 0 && n >= i.Cut.Times {
			return false
		}
		if i.cuts.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// isSpent reports whether no more connections may be cut.
func (i *imposed) isSpent() bool { return i.Cut.Times > 0 && i.cuts.Load() >= i.Cut.Times }

func (c Condition) shapes() bool {
	return c.Delay > 0 || c.Rate > 0 || c.Slice > 0 || c.Stall || c.BlackHole
}

// check says all that is wrong with the condition.
func (c Condition) check() error {
	var errs []error
	refuse := func(bad bool, format string, v ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, v...))
		}
	}
	refuse(c.Direction > Down, "direction %d is unknown", c.Direction)
	refuse(c.New > Refuse, "admission %d is unknown", c.New)
	refuse(c.Delay < 0 || c.Jitter < 0 || c.Jitter > c.Delay, "delay %v and jitter %v: they must not be negative, nor jitter greater than delay", c.Delay, c.Jitter)
	refuse(c.Rate < 0, "rate of %d bytes/s is negative", c.Rate)
	refuse(c.Slice < 0 || c.Pause < 0, "slice of %d bytes and pause %v: they must not be negative", c.Slice, c.Pause)
	refuse(c.Pause > 0 && c.Slice == 0, "pause %v has no meaning without a slice", c.Pause)
	refuse(c.HalfOpen && c.Direction == Both, "half open needs a direction: one side stays")
	if c.Cut != nil {
		refuse(c.Cut.Byte < 0 || c.Cut.Reply < 0 || c.Cut.Times < 0, "cut %+v: its numbers must not be negative", *c.Cut)
	}
	refuse(!c.shapes() && c.Cut == nil && !c.Reset && !c.HalfOpen && c.New == Admit, "nothing would be wrong")
	return errors.Join(errs...)
}

// shape is what all conditions on one direction add up to. It is never changed; pumps tell by its address whether the conditions are still the same.
type shape struct {
	delay, jitter, pause time.Duration
	rate                 int64
	slice                int
	stall, blackHole     bool
	// shapers are the conditions that act on every byte, cutters those that wait for one.
	shapers, cutters []*imposed
}

func (s *shape) isPlain() bool { return len(s.shapers) == 0 && len(s.cutters) == 0 }

// sum adds up the conditions on one direction. If there are none, it is plain.
func sum(all []*imposed, d Direction, plain *shape) *shape {
	s := &shape{}
	for _, c := range all {
		if c.Direction != Both && c.Direction != d {
			continue
		}
		if c.Cut != nil {
			s.cutters = append(s.cutters, c)
		}
		if !c.shapes() {
			continue
		}
		s.shapers = append(s.shapers, c)
		s.delay, s.jitter, s.pause = s.delay+c.Delay, s.jitter+c.Jitter, s.pause+c.Pause
		s.rate, s.slice = least(s.rate, c.Rate), least(s.slice, c.Slice)
		s.stall, s.blackHole = s.stall || c.Stall, s.blackHole || c.BlackHole
	}
	if s.isPlain() {
		return plain
	}
	return s
}

// least is the smaller limit, where 0 is none.
func least[T int | int64](a, b T) T {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
