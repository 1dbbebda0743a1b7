package scenarios

import "time"

// Arrivals is the timetable of the day as a curve, the section `load.arrivals:`. It stands in place of Hours and Burst.
type Arrivals struct {
	// Kind is how the events lie under the curve: "spread" (one at random in each part of equal mass), "even" (in the middle of each) or "poisson"
	// (independent of each other). The number of events is exact with all three.
	Kind  string
	Curve Curve
	// Line is where it stands in the file.
	Line int
}

// Curve is the rate of arrivals over the day, relative: whatever the curve, the day has its number of events. Exactly one of its forms is set.
type Curve struct {
	// Constant is the same rate all day, above 0.
	Constant float64
	Ramp     *Ramp
	// Steps are constant rates, each until the next one, in the order of the day. Before the first the rate is 0.
	Steps []RateStep
	Sine  *Sine
	// Hours are the rates at 00:00, 01:00 ... 23:00; between them the rate is linear.
	Hours *[24]float64
	Trace *Trace
	Burst *BurstOf
	// Sum is all of them on top of each other; of a Product the first has events per second, by which all others are multiplied.
	Sum, Product []Curve
	// Line is where it stands in the file.
	Line int
}

// Ramp goes from one rate at midnight to another at Until, and keeps that.
type Ramp struct {
	From, To float64
	Until    time.Duration
}

// RateStep is a rate from a time of the day on.
type RateStep struct {
	At   time.Duration
	Rate float64
}

// Sine swings around Mean by Amplitude, which is a share of it (0 to 1). At Phase on the day's clock it goes up through its mean.
type Sine struct {
	Mean, Amplitude float64
	Period, Phase   time.Duration
}

// Trace is a recording whose instants make the curve.
type Trace struct {
	// Path is the file, from the scenario's directory on already.
	Path string
	// At is when the first instant is on the day's clock; nil leaves it where it was. For is the time to the last one; 0 leaves that.
	At  *time.Duration
	For time.Duration
}

// BurstOf is a burst in a curve of its own: the rate in it is Times the mean of the day with the burst.
type BurstOf struct {
	Burst
	Of Curve
}
