package postgres

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/s2"
)

// escape makes any bytes a text that the server takes: valid UTF-8 without the byte 0. Ordinary texts stay as they are, and no two become the same.
// What providers send is not to be trusted, and an id that the server refuses would fail all that share a statement with it.
func escape(s string) string {
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == 0 || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// unescape is the inverse of escape.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
		case s[i+1] == 'x' && i+3 < len(s):
			b.WriteByte(hexDigit(s[i+2])<<4 | hexDigit(s[i+3]))
			i += 3
		default:
			b.WriteByte(s[i+1])
			i++
		}
	}
	return b.String()
}

func hexDigit(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// maxReason bounds what is kept of a reason, in bytes: it is read by people, and some handlers return whole pages.
const maxReason = 4096

func clip(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	cut := maxReason
	for cut > 0 && !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return reason[:cut] + "..."
}

// How a body is stored, as it stands in the column encoding.
const (
	encodingRaw = 0
	encodingS2  = 1
)

// encode returns the smaller of the payload and its compressed form, on the caller's goroutine. It may return the payload itself.
func encode(payload []byte) (encoding int16, body []byte) {
	compressed := s2.Encode(nil, payload)
	if len(compressed) < len(payload) {
		return encodingS2, compressed
	}
	return encodingRaw, payload
}

func decode(encoding int16, body []byte) ([]byte, error) {
	switch encoding {
	case encodingRaw:
		return body, nil
	case encodingS2:
		payload, err := s2.Decode(nil, body)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return payload, nil
	default:
		return nil, fmt.Errorf("payload has the unknown encoding %d: it was stored by a newer version", encoding)
	}
}
