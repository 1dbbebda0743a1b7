package loadgen

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"
)

// dayLength is the length of the day that a Diurnal spreads its events over.
const dayLength = 24 * time.Hour

// Diurnal describes the arrivals of one day: a curve through hourly rates with one burst in it. NewDiurnal makes a Schedule of it.
type Diurnal struct {
	// Events is how many events the day has, exactly. At least 1.
	Events int
	// Hours are the relative rates at 00:00, 01:00 ... 23:00. Between them the rate is linear, after 23:00 it leads back to 00:00. All zero is a flat day.
	Hours [24]float64
	// BurstAt and BurstFor are the window within the day in which the rate is BurstTimes the day's mean (Events / 24 h): replaced, not added. The rest is
	// scaled so that the total stays. BurstTimes 0 means no burst.
	BurstAt, BurstFor time.Duration
	BurstTimes        float64
	// Seed fixes where each event falls.
	Seed uint64
}

// NewDiurnal returns the schedule of a day, or an error that says which numbers do not fit each other.
//
// Event n of N is due where the cumulative rate reaches n + u(n), u(n) uniform in [0, 1): one event in each N-th part of the day's mass. A gap is
// anything from nothing to twice the mean, and yet the total is exact and every hour has its share up to one event.
//
// Note: a Poisson process would make the number of events itself random, and then nobody could say how many must arrive. Its longer clumps are what the
// burst is for.
func NewDiurnal(d Diurnal) (Schedule, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if d.Hours == [24]float64{} {
		for i := range d.Hours {
			d.Hours[i] = 1
		}
	}
	c := &curve{events: d.Events, dice: dice{d.Seed}, pieces: d.pieces()}
	total := float64(d.Events)
	burst := total * d.burstShare()
	var outside float64
	for _, p := range c.pieces {
		if !d.inBurst(p.from) {
			outside += p.mass()
		}
	}
	if outside == 0 && burst < total {
		return nil, errors.New("hours: all rates outside the burst are zero, so that the rest of the events has no place; raise one")
	}
	var before float64
	for i := range c.pieces {
		p := &c.pieces[i]
		if d.inBurst(p.from) {
			p.rate, p.slope = total/float64(dayLength)*d.BurstTimes, 0
		} else if outside > 0 {
			p.rate *= (total - burst) / outside
			p.slope *= (total - burst) / outside
		}
		p.before = before
		before += p.mass()
	}
	return c, nil
}

// check returns all that is wrong with the numbers.
func (d Diurnal) check() error {
	var errs []error
	if d.Events < 1 {
		errs = append(errs, fmt.Errorf("events: %d is not a number of events, want 1 or more", d.Events))
	}
	for h, rate := range d.Hours {
		if !(rate >= 0) || math.IsInf(rate, 0) {
			errs = append(errs, fmt.Errorf("hours: rate %v at %02d:00 is not a number of at least 0", rate, h))
		}
	}
	switch {
	case d.BurstTimes == 0:
	case !(d.BurstTimes > 0) || math.IsInf(d.BurstTimes, 0):
		errs = append(errs, fmt.Errorf("burst: %v times the mean is not a rate", d.BurstTimes))
	case d.BurstAt < 0 || d.BurstFor <= 0 || d.BurstAt > dayLength-d.BurstFor:
		errs = append(errs, fmt.Errorf("burst: %v from %v does not lie within the day", d.BurstFor, d.BurstAt))
	case d.burstShare() > 1:
		errs = append(errs, fmt.Errorf("burst: %v times the mean for %v is %.0f %% of the day's events; shorten it", d.BurstTimes, d.BurstFor, 100*d.burstShare()))
	}
	return errors.Join(errs...)
}

// burstShare is the part of the day's events that fall into the burst.
func (d Diurnal) burstShare() float64 {
	return d.BurstTimes * float64(d.BurstFor) / float64(dayLength)
}

// inBurst reports whether an instant, in nanoseconds of the day, lies in the burst.
func (d Diurnal) inBurst(at float64) bool {
	return d.BurstTimes > 0 && at >= float64(d.BurstAt) && at < float64(d.BurstAt+d.BurstFor)
}

// pieces cuts the day at the full hours and at the ends of the burst, with the relative rates of Hours.
func (d Diurnal) pieces() []piece {
	var cuts []time.Duration
	for h := range 25 {
		cuts = append(cuts, time.Duration(h)*time.Hour)
	}
	if d.BurstTimes > 0 {
		cuts = append(cuts, d.BurstAt, d.BurstAt+d.BurstFor)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	pieces := make([]piece, len(cuts)-1)
	for i := range pieces {
		hour := cuts[i] / time.Hour
		slope := (d.Hours[(hour+1)%24] - d.Hours[hour]) / float64(time.Hour)
		pieces[i] = piece{
			from:   float64(cuts[i]),
			length: float64(cuts[i+1] - cuts[i]),
			rate:   d.Hours[hour] + slope*float64(cuts[i]%time.Hour),
			slope:  slope,
		}
	}
	return pieces
}

// piece is a stretch with a linear rate. Times are nanoseconds, rates events per nanosecond: a float64 holds both without loss that matters.
type piece struct {
	from, length float64
	// rate is the rate at from, slope its change per nanosecond, before the events due before from.
	rate, slope, before float64
}

// mass is the number of events in the piece.
func (p piece) mass() float64 { return p.length * (p.rate + p.slope*p.length/2) }

// reach returns how far into the piece its first c events reach: the root of slope/2 x^2 + rate x = c.
//
// Note: the numerically gentler form 2c / (rate + sqrt(rate^2 + 2 slope c)) is not used, because a quotient of two growing numbers need not grow when it is
// rounded. Here every step alone is monotone in c, hence so is the result; the cancellation costs less than a microsecond above the flatness bound.
func (p piece) reach(c float64) float64 {
	const flat = 1e-6
	var x float64
	switch {
	case p.mass() <= 0:
		return 0
	case math.Abs(p.slope)*p.length <= flat*p.rate:
		x = c / p.mass() * p.length
	default:
		x = (math.Sqrt(max(0, p.rate*p.rate+2*p.slope*c)) - p.rate) / p.slope
	}
	return min(max(x, 0), p.length)
}

// curve is the Schedule of a Diurnal.
type curve struct {
	dice   dice
	events int
	pieces []piece
}

// At implements Schedule for 0 <= n < Events. It never falls as n grows, and it is always before 24:00.
func (c *curve) At(n int) time.Duration {
	want := float64(n) + c.dice.unit(forArrival, uint64(n))
	i := sort.Search(len(c.pieces), func(i int) bool { return c.pieces[i].before > want }) - 1
	p := c.pieces[max(i, 0)]
	return min(time.Duration(p.from+p.reach(want-p.before)), dayLength-1)
}
