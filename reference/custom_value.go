package reference

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// customPart is literal text and the piece that follows it; the last part of a template has no piece.
type customPart struct{ text, piece string }

// customParts splits a template into its parts.
func customParts(template string, known ...string) ([]customPart, error) {
	var parts []customPart
	for {
		text, rest, more := strings.Cut(template, "{")
		if !more {
			return append(parts, customPart{text: text}), nil
		}
		piece, after, closed := strings.Cut(rest, "}")
		if !closed || !slices.Contains(known, piece) {
			return nil, fmt.Errorf("unknown piece in %q: use {%s}", template, strings.Join(known, "}, {"))
		}
		parts = append(parts, customPart{text, piece})
		template = after
	}
}

// maxCustomSignatures bounds the signatures that are looked at: one per active secret.
const maxCustomSignatures = 16

// customValue takes the value of a signature's header apart. Every signature has the same length, and a time stamp ends with its last digit, so that there is one way
// to read a value.
type customValue struct {
	parts []customPart
	join  string
	// width is the length of an encoded signature.
	width int
	// base64 or hexadecimal.
	base64 bool
	// stamp is the piece of the time stamp, empty if none is signed.
	stamp string
}

// newCustomValue reads the form of a value; size is the length of a signature in bytes.
func newCustomValue(c *CustomScheme, size int) (v customValue, err error) {
	v.join = c.Join
	switch c.Encoding {
	case "hex":
		v.width = hex.EncodedLen(size)
	case "base64":
		v.width, v.base64 = base64.StdEncoding.EncodedLen(size), true
	default:
		return v, fmt.Errorf("unknown encoding %q: use hex or base64", c.Encoding)
	}
	if v.parts, err = customParts(c.Value, "signature", "signatures", "timestamp", "timestamp_ms"); err != nil {
		return v, err
	}
	signed := 0
	for i, p := range v.parts {
		switch p.piece {
		case "signature", "signatures":
			signed++
		case "timestamp", "timestamp_ms":
			next := v.parts[i+1]
			if v.stamp != "" || next.text == "" && next.piece != "" || next.text != "" && isDigit(next.text[0]) {
				return v, fmt.Errorf("value %q does not show where its one time stamp ends", c.Value)
			}
			v.stamp = p.piece
		}
	}
	if signed != 1 {
		return v, errors.New("value must hold {signature} or {signatures} exactly once")
	}
	return v, nil
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// parse reads a value. ok is false unless all of it has the form.
func (v *customValue) parse(value string) (stamp string, signatures [][]byte, ok bool) {
	for _, p := range v.parts {
		if value, ok = strings.CutPrefix(value, p.text); !ok {
			return "", nil, false
		}
		switch p.piece {
		case "timestamp", "timestamp_ms":
			rest := strings.TrimLeft(value, "0123456789")
			stamp, value = value[:len(value)-len(rest)], rest
		case "signature":
			signatures, value = v.signatures(value, 1)
		case "signatures":
			signatures, value = v.signatures(value, maxCustomSignatures)
		}
	}
	return stamp, signatures, value == "" && len(signatures) > 0
}

// signatures reads up to most signatures from the begin of a text.
func (v *customValue) signatures(text string, most int) (list [][]byte, rest string) {
	for len(list) < most {
		next := text
		if len(list) > 0 {
			var joined bool
			if next, joined = strings.CutPrefix(text, v.join); !joined {
				break
			}
		}
		if len(next) < v.width {
			break
		}
		raw, err := v.decode(next[:v.width])
		if err != nil {
			break
		}
		list, text = append(list, raw), next[v.width:]
	}
	return list, text
}

func (v *customValue) decode(text string) ([]byte, error) {
	if v.base64 {
		return base64.StdEncoding.Strict().DecodeString(text)
	}
	return hex.DecodeString(text)
}
