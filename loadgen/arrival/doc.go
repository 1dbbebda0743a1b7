// Package arrival says when the events of a day are due: a [Curve] is the shape of the day, [Arrivals] place an exact number of events under it.
//
// A schedule asks no clock and remembers nothing. When event n is due is a function of the curve, the number of events, the kind, the seed and n, so that
// timing, answers and the order of goroutines cannot change what is sent, and so that any part of a day can be computed without the part before it.
//
// # Curves
//
// A curve is the rate of arrivals over one day, 24 hours from midnight, and the mass below it. Only its shape counts: whatever the mass, a schedule has
// [Arrivals.Events] events. All that is written as events per second here may as well be a relative number.
//
//	curve                          rate                                                                        mass
//	Constant(rate)                 the same all day                                                            exact
//	Ramp(from, to, over)           linear from midnight on, then it stays                                      exact
//	Steps(steps)                   constant from each step to the next, 0 before the first                     exact
//	Hours(rates)                   linear between the full hours, after 23:00 back to that of 00:00            exact
//	Sine(mean, amp, period, phase) mean + amp sin(2π (t - phase) / period)                                     exact
//	Burst(base, at, length, times) times the mean of the day from at for length, the base otherwise            that of the base
//	Trace(instants)                as recorded, each instant for one event                                     exact
//	Scale(c, k)                    k times c                                                                   that of c
//	Sum(curves...)                 all of them on top of each other                                            that of the parts
//	Product(curves...)             one modulates the others                                                    exact for polynomials, else within 1e-9 of the whole
//
// Diurnal traffic is Hours; with Burst around it, it is what loadgen.NewDiurnal makes, event for event.
//
// "Exact" is up to the rounding of float64. Inside, everything but a sine and a trace is a list of pieces with a polynomial each, kept in Bernstein form:
// numbers that are not negative stay so through sums, products and cuts, hence no rate is ever below 0 and no mass ever falls.
// A product with a sine is cut by adaptive Simpson integration into quadratic pieces, which are pieces like any other.
//
// Constructors do not return an error, so that curves nest. One that is given nonsense returns a curve that carries the error, every curve made of it
// carries it on, and [Arrivals.Schedule] returns all of them at once.
//
// # Kinds
//
//	Spread   event n falls at random into the n-th part of the mass: gaps of 0 to 2 times the mean, every hour has its share up to one event
//	Even     event n is due in the middle of the n-th part: no randomness, and a trace is replayed to the nanosecond
//	Poisson  independent arrivals: exponential gaps, clumps and lulls as real traffic of many unrelated senders has them
//
// All three have exactly the number of events that was asked for, and none ever falls back: At(n) <= At(n+1).
//
// # Poisson arrivals with an exact total
//
// A Poisson process makes the number of events itself random, and then nobody could say how many must arrive. But given that there are N of them, the events
// of a Poisson process are N independent draws from the mass, sorted (S. M. Ross, Introduction to Probability Models, "conditional distribution of
// the arrival times"). So event n is due where the n-th smallest of N uniform draws lies, and that can be had without the N draws: of k uniform draws between
// a and b, the m-th smallest lies at a + (b-a) Beta(m, k+1-m), and given that, those below and above it are uniform and independent again. Starting with all
// N, halving the ranks each time, event n is reached in log2(N) steps. Each draw depends on the seed and on the rank that it places, so that all events
// agree on every split that they share. The last few ranks of a range are placed at once, by exponential gaps that are scaled to it.
//
// Note: halving the interval and drawing how many events fall into each half (a binomial draw) leads to the same distribution, but needs an exact binomial
// sampler for numbers of any size, and the depth depends on how the events clump. Summing exponential gaps from the first event on is neither a function of
// n nor exact in the total.
//
// # Reproducibility
//
// The same curve, number, kind and seed give the same instants in every run. The last bits of a float64 may differ between processor architectures, because Go
// may fuse a multiplication and an addition; that moves an event by nanoseconds.
package arrival
