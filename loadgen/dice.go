package loadgen

import (
	"encoding/binary"
	"hash/fnv"
)

// dice are the draws of a run: pure functions of a seed, a purpose and a number. No draw depends on how many were made before it, so that timing,
// answers and the order of goroutines cannot change what is sent.
//
// For one seed and one purpose, bits is a bijection of the number: two numbers never share their 64 bits. Keys need that, because two events with one
// id would look like a loss.
//
// Note: one rand.Rand passed along would do for a list that is made at once; here every draw would have to be made in the same order in every run.
type dice struct{ seed uint64 }

// purpose separates draws for the same number.
type purpose uint64

const (
	forArrival purpose = iota + 1
	forProvider
	forBatch
	forDraw
	forEventKey
	forDeliveryKey
	forNewDeliveryKey
	forResourceKey
	forVersions
	forDuplicate
	forDuplicateTime
	forNewID
	forNewIDTime
	forHold
	forHoldTime
	forForgery
	forForgeryKind
	forExpiry
	forExpiryKind
	forMalformed
	forPoison
	forPoisonItem
	forJitter
	forResourceDraw
	forConcurrent
	forStale
	forStaleTime
	forResend
	forResendTime
	forOversized
	forWrongType
	forSlowBody
	forCutBody
	forClientGone
	forMash
	forMashTime
	forFuture
)

// withRun returns the dice for what must differ from run to run: ids.
func (d dice) withRun(runID string) dice {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, d.seed) // a hash never fails
	_, _ = h.Write([]byte(runID))
	return dice{mix(h.Sum64())}
}

// bits draws 64 bits.
func (d dice) bits(p purpose, n uint64) uint64 {
	return mix(mix(d.seed^mix(uint64(p))) ^ mix(n))
}

// unit draws a number in [0, 1).
func (d dice) unit(p purpose, n uint64) float64 { return unit(d.bits(p, n)) }

// hit reports whether n belongs to a share, 0 to 1.
func (d dice) hit(p purpose, n uint64, share float64) bool { return d.unit(p, n) < share }

// unit maps 64 bits to [0, 1) by the 53 that a float64 holds exactly.
func unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }

// mix is the output function of SplitMix64 by Vigna (https://prng.di.unimi.it/splitmix64.c, public domain), with its increment applied first so that 0
// does not map to 0. Every step can be undone, hence it is a bijection.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
