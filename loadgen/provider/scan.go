package provider

import "bytes"

// whole is PayloadOf of a provider that sends one event a request.
func whole(body []byte, _ int) []byte { return body }

// one is BatchSize of a provider that sends one event a request.
func one(uint64) int { return 1 }

// item returns the bytes of the i-th item of a JSON array, without the space around it, or nil if there is none. It counts brackets and knows strings; it
// does not validate.
//
// Note: encoding/json needs the whole array decoded for one item, and takes about ten times as long.
func item(array []byte, i int) []byte {
	at := skipSpace(array, 0)
	if at >= len(array) || array[at] != '[' || i < 0 {
		return nil
	}
	at++
	for {
		at = skipSpace(array, at)
		end := skipValue(array, at)
		if end <= at || end == len(array) {
			return nil // no value, or one that the end of the body cut
		}
		if i == 0 {
			return array[at:end:end]
		}
		i--
		at = skipSpace(array, end)
		if at >= len(array) || array[at] != ',' {
			return nil
		}
		at++
	}
}

// skipSpace returns the position of the first byte from at on that is not JSON white space.
func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\n' || b[at] == '\r') {
		at++
	}
	return at
}

// skipValue returns the end of the value that begins at at; at itself, or the end of a cut value, if there is none.
func skipValue(b []byte, at int) int {
	depth := 0
	for ; at < len(b); at++ {
		switch b[at] {
		case '"':
			if at = skipString(b, at); at >= len(b) {
				return len(b)
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			depth--
			if depth == 0 {
				return at + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}

// skipString returns the position of the quote that closes the string beginning at at, len(b) if it is not closed.
func skipString(b []byte, at int) int {
	for at++; at < len(b); at++ {
		switch b[at] {
		case '\\':
			at++
		case '"':
			return at
		}
	}
	return len(b)
}

// tamperer returns a Tamper that changes the last digit of the first number (also one in quotes) that follows one of the member names, in this order of
// preference. The number keeps its length and does not get a leading zero. The names must not take part in the canonical id.
func tamperer(names ...string) func([]byte) {
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = []byte(`"` + name + `":`)
	}
	return func(body []byte) {
		for _, key := range keys {
			for from := 0; ; {
				at := bytes.Index(body[from:], key)
				if at < 0 {
					break
				}
				from += at + len(key)
				if changeDigit(body[from:]) {
					return
				}
			}
		}
	}
}

// changeDigit changes the last digit of the number that b begins with.
func changeDigit(b []byte) bool {
	at := 0
	if at < len(b) && b[at] == '"' {
		at++
	}
	end := at
	for end < len(b) && (b[end] >= '0' && b[end] <= '9' || b[end] == '.') {
		end++
	}
	if end == at || end == len(b) || b[end-1] == '.' {
		return false
	}
	if b[end-1] == '9' {
		b[end-1] = '8'
	} else {
		b[end-1]++
	}
	return true
}
