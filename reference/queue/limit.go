package queue

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Limiter is a queue whose processes can share a rate (optional): together they keep to it, however many there are.
type Limiter interface {
	// Take takes n turns of a limit and returns how long the caller has to wait until it may use the last of them. A turn that was taken is used up, whether or not the caller
	// waits. What is left of a limit need not survive a restart of the queue's server, or a loss of power: it then begins anew, with its burst.
	Take(ctx context.Context, limit Limit, n int) (wait time.Duration, err error)
}

// Limit is a rate that is shared by all who call it by the same name. All of them should say the same of it.
type Limit struct {
	// Name is the limit's, of any characters.
	Name string
	// Rate is turns a second, more than 0.
	Rate float64
	// Burst is how many turns may be taken at once after a while in which none was, at least 1.
	Burst int
}

// Check says what is wrong with it.
func (l Limit) Check() error {
	switch {
	case !(l.Rate > 0) || math.IsInf(l.Rate, 1):
		return fmt.Errorf("limit %q: the rate is %v: use more than 0 a second", l.Name, l.Rate)
	case l.Burst < 1:
		return fmt.Errorf("limit %q: the burst is %d: use at least 1", l.Name, l.Burst)
	case l.Every() <= 0:
		return errors.New("limit: the rate is over a thousand million a second: leave it out")
	}
	return nil
}

// String is the limit for people, without its name: "40/s", "90/min, 5 at once".
func (l Limit) String() string {
	amount, unit := l.Rate, "s"
	if amount < 1 {
		amount, unit = amount*60, "min"
	}
	if amount < 1 {
		amount, unit = amount*60, "h"
	}
	text := strconv.FormatFloat(amount, 'g', 6, 64) + "/" + unit
	if l.Burst > 1 {
		text += ", " + strconv.Itoa(l.Burst) + " at once"
	}
	return text
}

// Every is the time from one turn to the next.
func (l Limit) Every() time.Duration {
	return time.Duration(min(float64(time.Second)/l.Rate, math.MaxInt64/4))
}

// Reserve takes n turns. state is what the limit was left in, an instant in nanoseconds on the clock of now, 0 for a limit that nobody has used; it returns what it is left in by that,
// and the wait. It is what a backend does under its lock.
//
// Note: this is the token bucket as one number, the instant at which the bucket will be full again (the generic cell rate algorithm, ITU-T I.371). It needs no goroutine that
// fills buckets, and a limit that nobody uses costs nothing.
func (l Limit) Reserve(state, now int64, n int) (left int64, wait time.Duration) {
	every := int64(l.Every())
	left = max(state, now) + int64(n)*every
	return left, time.Duration(max(0, left-int64(l.Burst)*every-now))
}
