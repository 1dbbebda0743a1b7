package provider

import (
	"encoding/hex"
	"strconv"
	"time"
)

// mix is the finaliser of splitmix64 (https://prng.di.unimi.it/splitmix64.c): it scatters bits and is a bijection, so that different keys stay different.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// draw returns independent bits of a key for each salt. For one salt it is a bijection of the key.
func draw(key, salt uint64) uint64 {
	return mix(key + (salt+1)*0x9e3779b97f4a7c15)
}

// among draws a number between lo and hi, both included.
func among(r, lo, hi uint64) uint64 {
	return lo + r%(hi-lo+1)
}

// resourceID draws the number by which a receiver tells resources apart, of 13 or 14 digits. Real ones have 10 to 13 and count up; these are drawn at random, and
// must not meet: of a million, two do with a chance of 1 in 200.
func resourceID(r uint64) uint64 { return among(r, 1_000_000_000_000, 99_999_999_999_999) }

// pick draws one of a list.
func pick[T any](list []T, r uint64) T {
	return list[r%uint64(len(list))]
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// appendBase62 appends n digits of x to the base 62. Eleven digits hold all 64 bits.
func appendBase62(dst []byte, x uint64, n int) []byte {
	for range n {
		dst = append(dst, base62[x%62])
		x /= 62
	}
	return dst
}

// appendRandom62 appends n pseudo-random digits to the base 62 (not a faithful encoding of the key; for ids that nobody compares).
func appendRandom62(dst []byte, key uint64, n int) []byte {
	for salt := uint64(0); n > 0; salt++ {
		dst = appendBase62(dst, draw(key, salt), min(n, 10))
		n -= 10
	}
	return dst
}

// appendHex appends n (at most 16 a draw) hexadecimal digits.
func appendHex(dst []byte, key uint64, n int) []byte {
	const digits = "0123456789abcdef"
	for salt := uint64(0); n > 0; salt++ {
		x := draw(key, salt)
		for range min(n, 16) {
			dst = append(dst, digits[x&15])
			x >>= 4
		}
		n -= 16
	}
	return dst
}

// appendGUID appends a GUID of the given version (1 or 4) that holds all 64 bits of the key: 62 of them in its last two groups, two in its first digit.
// For one version, different keys give different GUIDs.
func appendGUID(dst []byte, key uint64, version byte) []byte {
	var b [16]byte
	lo, hi := draw(key, 101), draw(key, 102)
	hi = hi&^(0b11<<62) | lo&(0b11<<62)
	for i := range 8 {
		b[i] = byte(hi >> (56 - 8*i))
		b[8+i] = byte(lo >> (56 - 8*i))
	}
	b[6] = b[6]&0x0f | version<<4
	b[8] = b[8]&0x3f | 0x80 // the variant of RFC 9562; the two bits lost here are the ones kept in b[0]
	start := len(dst)
	dst = append(dst, "00000000-0000-0000-0000-000000000000"...)
	out := dst[start:]
	hex.Encode(out[0:8], b[0:4])
	hex.Encode(out[9:13], b[4:6])
	hex.Encode(out[14:18], b[6:8])
	hex.Encode(out[19:23], b[8:10])
	hex.Encode(out[24:36], b[10:16])
	return dst
}

// appendCents appends an amount of minor units as a decimal number: 4495 is 44.95.
func appendCents(dst []byte, cents uint64) []byte {
	dst = strconv.AppendUint(dst, cents/100, 10)
	return append(dst, '.', byte('0'+cents/10%10), byte('0'+cents%10))
}

// shown is the payload clock of an event as its provider prints it, in whole seconds. Each version adds one second, because providers
// print seconds and two versions of a resource may fall into the same one: what the bytes show then still grows with the version.
//
// Note: the alternative was to let equal seconds be a tie. It would make every fast run of versions unjudgeable for order.
func shown(e Event) time.Time {
	return e.At.UTC().Truncate(time.Second).Add(time.Duration(max(e.Version, 1)-1) * time.Second)
}

// standIn is the event that a malformed delivery without events is rendered from. It has no payload clock of its own, so that it shows a fixed day.
func standIn(d Delivery) Event {
	if len(d.Events) > 0 {
		return d.Events[0]
	}
	return Event{
		Key:  draw(d.Key, 201),
		Draw: draw(d.Key, 203), ResourceKey: draw(d.Key, 202), ResourceDraw: draw(d.Key, 204),
		Version: 1,
		At:      time.Date(2026, time.November, 2, 9, 0, 0, 0, time.UTC),
	}
}

// cut removes the second half of what was rendered since start: a JSON value that is opened and never closed.
func cut(body []byte, start int) []byte {
	return body[:start+(len(body)-start)/2]
}
