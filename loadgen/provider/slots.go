package provider

import "strconv"

// The kinds of slots. Each makes a slot of any scratch type from a function that finds the value.

// number renders an integer.
func number[T any](f func(*T) uint64) slot[T] {
	return func(dst []byte, v *T) []byte { return strconv.AppendUint(dst, f(v), 10) }
}

// money renders minor units as a decimal number.
func money[T any](f func(*T) uint64) slot[T] {
	return func(dst []byte, v *T) []byte { return appendCents(dst, f(v)) }
}

// words renders text that needs no escaping.
func words[T any, S ~string | ~[]byte](f func(*T) S) slot[T] {
	return func(dst []byte, v *T) []byte { return append(dst, f(v)...) }
}

// either renders the one JSON or the other.
func either[T any](when func(*T) bool, then, otherwise slot[T]) slot[T] {
	return func(dst []byte, v *T) []byte {
		if when(v) {
			return then(dst, v)
		}
		return otherwise(dst, v)
	}
}

// literal renders always the same.
func literal[T any](s string) slot[T] {
	return func(dst []byte, _ *T) []byte { return append(dst, s...) }
}

// quoted is a text as a JSON string.
func quoted[T any, S ~string | ~[]byte](f func(*T) S) slot[T] {
	return func(dst []byte, v *T) []byte {
		dst = append(dst, '"')
		dst = append(dst, f(v)...)
		return append(dst, '"')
	}
}
