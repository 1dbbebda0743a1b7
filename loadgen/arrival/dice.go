package arrival

import "math"

// dice are the draws of a day: pure functions of the seed, a purpose and a number.
type dice struct{ seed uint64 }

// purpose separates draws for the same number.
type purpose uint64

const (
	// forSpread is the purpose that loadgen's own timetable draws with, so that a day which is written anew as a curve keeps its instants.
	forSpread purpose = 1
	// forSplit and forGaps are none that loadgen draws with: which provider an event goes to must say nothing about when it is due.
	forSplit purpose = 0xa4417a1<<8 | iota
	forGaps
)

// bits draws 64 bits.
func (d dice) bits(p purpose, n uint64) uint64 { return mix(mix(d.seed^mix(uint64(p))) ^ mix(n)) }

// unit draws a number in [0, 1).
func (d dice) unit(p purpose, n uint64) float64 { return unit(d.bits(p, n)) }

// stream draws as many numbers as one wants for the same purpose and number.
func (d dice) stream(p purpose, n uint64) stream { return stream{d.bits(p, n)} }

// golden is the increment of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// mix is one step of SplitMix64 by Vigna (https://prng.di.unimi.it/splitmix64.c, public domain) from the state x.
func mix(x uint64) uint64 {
	x += golden
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// unit maps 64 bits to [0, 1) by the 53 that a float64 holds exactly.
func unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }

// stream is SplitMix64.
//
// Note: math/rand/v2 has the same draws on any source, but promises none of its streams except that of its sources; a new release of Go must not change
// what a seed means.
type stream struct{ state uint64 }

func (s *stream) unit() float64 {
	x := mix(s.state)
	s.state += golden
	return unit(x)
}

// exponential draws a gap with mean 1.
func (s *stream) exponential() float64 { return -math.Log(1 - s.unit()) }

// normal draws from the standard normal distribution, by Box and Muller.
func (s *stream) normal() float64 {
	r := math.Sqrt(2 * s.exponential())
	return r * math.Cos(2*math.Pi*s.unit())
}

// gamma draws from the gamma distribution of a shape of at least 1, exactly: G. Marsaglia and W. W. Tsang, A Simple Method for Generating Gamma
// Variables, ACM TOMS 26 (2000), https://doi.org/10.1145/358407.358414. About one draw in a hundred is refused and made again.
func (s *stream) gamma(shape float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.normal()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v, u := v*v*v, 1-s.unit()
		if u < 1-0.0331*x*x*x*x || math.Log(u) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}

// beta draws the a-th smallest of a+b-1 uniform numbers.
func (s *stream) beta(a, b int) float64 {
	x, y := s.gamma(float64(a)), s.gamma(float64(b))
	return x / (x + y)
}
