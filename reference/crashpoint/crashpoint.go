// Package crashpoint names the instants of the pipeline at which a crash tells most, and lets a test choose one of them.
//
// A kill from outside comes at any instant, nearly always a dull one: a process waits most of its life. The interesting ones are the few microseconds between two
// promises, such as an effect that was taken and a job that is not settled yet. The pipeline passes a [Hook] there. In use that hook is nil and costs a comparison; a process
// that is to be tested gives it a [Fuse].
//
// Note: build tags, which would cost nothing at all, were rejected: what is tested must be the program that is used.
package crashpoint

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
)

// Point is one instant, by the name that people write.
type Point string

// The points of a worker, in the order in which a job passes them.
const (
	// AfterClaim: a job was leased, and its handler was not called. Nothing was done; somebody else must do it when the lease is over. A worker that settles first loses it.
	AfterClaim Point = "after-claim"
	// BeforeSettle: the handler is done, and nobody but the downstream knows. The job comes again, and must not take effect twice.
	BeforeSettle Point = "before-settle"
	// AfterSettle: the queue has said that the job is done. It must not come again for want of a sync.
	AfterSettle Point = "after-settle"
)

// The points of a receiver, in the order in which a delivery passes them.
const (
	// BeforeEnqueue: a delivery was found genuine, and nothing was stored. It was not answered, so its provider sends it again.
	BeforeEnqueue Point = "before-enqueue"
	// AfterEnqueue: its events are durable, and it was not answered. Its provider sends again what must be known by then.
	AfterEnqueue Point = "after-enqueue"
	// AfterAnswer: the answer has left the process, which dies at once. What was acknowledged must exist; a receiver that writes after its answer loses it.
	AfterAnswer Point = "after-answer"
)

// Worker lists the points of a worker, Receiver those of a receiver. The slices are the caller's.
func Worker() []Point { return []Point{AfterClaim, BeforeSettle, AfterSettle} }

// Receiver lists the points of a receiver.
func Receiver() []Point { return []Point{BeforeEnqueue, AfterEnqueue, AfterAnswer} }

// Parse finds a point by its name.
func Parse(name string) (Point, error) {
	all := slices.Concat(Worker(), Receiver())
	if p := Point(name); slices.Contains(all, p) {
		return p, nil
	}
	var known []string
	for _, p := range all {
		known = append(known, string(p))
	}
	return "", fmt.Errorf("unknown crash point %q: use one of %s", name, strings.Join(known, ", "))
}

// Hook is told of every passing of every point, from many goroutines at once. Nil is told nothing.
type Hook func(Point)

// At passes a point.
func (h Hook) At(p Point) {
	if h != nil {
		h(p)
	}
}

// Fuse ends the process at a chosen passing of a chosen point. Its zero value is not valid, see [NewFuse]; it is safe for concurrent use.
type Fuse struct {
	burn   func(Point)
	charge atomic.Pointer[charge]
}

// charge is one arming. left is how many passings are left; below 1 it has burnt.
type charge struct {
	point Point
	left  atomic.Int64
}

// NewFuse makes a fuse that is not armed. burn ends the process and does not return: what has passed the point must not go on.
func NewFuse(burn func(Point)) *Fuse { return &Fuse{burn: burn} }

// Arm lets the fuse burn at the nth passing of a point from now on, the first being 1. It replaces an earlier arming.
func (f *Fuse) Arm(p Point, nth int64) {
	c := &charge{point: p}
	c.left.Store(nth)
	f.charge.Store(c)
}

// Disarm takes the arming back. A passing that has come so far burns all the same.
func (f *Fuse) Disarm() { f.charge.Store(nil) }

// At is the fuse as a [Hook].
func (f *Fuse) At(p Point) {
	c := f.charge.Load()
	if c == nil || c.point != p {
		return
	}
	if c.left.Add(-1) == 0 {
		f.burn(p)
	}
}
