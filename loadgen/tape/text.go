package tape

import (
	"bytes"
	"encoding/hex"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// text is a string within a body: its bytes as they stand there, and what they mean. Replacements are made in what it means and then written back to where it
// stands, so that nothing but the replaced characters changes: neither a length nor an escape nor a space.
type text struct {
	raw []byte
	// plain is raw without its escapes. It is raw itself where there is none, and may not be written to.
	plain []byte
	// at is where in raw each byte of plain comes from. Nil: from the same place.
	at []int32
}

// jsonText decodes what stands between the quotes of a valid JSON string.
func jsonText(raw []byte) text {
	if bytes.IndexByte(raw, '\\') < 0 {
		return text{raw: raw, plain: raw}
	}
	t := text{raw: raw, plain: make([]byte, 0, len(raw)), at: make([]int32, 0, len(raw))}
	for i := 0; i < len(raw); {
		r, width := rune(-1), 1
		if raw[i] == '\\' {
			r, width = unescape(raw[i:])
		}
		start := len(t.plain)
		if r < 0 {
			t.plain = append(t.plain, raw[i])
		} else {
			t.plain = utf8.AppendRune(t.plain, r)
		}
		for range len(t.plain) - start {
			t.at = append(t.at, int32(i))
		}
		i += width
	}
	return t
}

// unescape decodes the escape that b begins with and returns its length.
func unescape(b []byte) (rune, int) {
	if b[1] != 'u' {
		const names, runes = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
		return rune(runes[bytes.IndexByte([]byte(names), b[1])]), 2
	}
	r := hex4(b[2:6])
	if utf16.IsSurrogate(r) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		if pair := utf16.DecodeRune(r, hex4(b[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return r, 6 // AppendRune makes U+FFFD of half a pair, which nothing replaces
}

func hex4(b []byte) rune {
	n, _ := strconv.ParseUint(string(b), 16, 16) // four hexadecimal digits: the text is valid JSON
	return rune(n)
}

// formText decodes a name or a value of a form, false if an escape is none.
func formText(raw []byte) (text, bool) { return percentText(raw, ' ') }

// pathText is formText for a path, where a plus is a plus.
func pathText(raw []byte) (text, bool) { return percentText(raw, '+') }

func percentText(raw []byte, plus byte) (text, bool) {
	if bytes.IndexByte(raw, '%') < 0 && bytes.IndexByte(raw, '+') < 0 {
		return text{raw: raw, plain: raw}, true
	}
	t := text{raw: raw, plain: make([]byte, 0, len(raw)), at: make([]int32, 0, len(raw))}
	for i := 0; i < len(raw); i++ {
		t.at = append(t.at, int32(i))
		switch raw[i] {
		case '+':
			t.plain = append(t.plain, plus)
		case '%':
			var b [1]byte
			if i+2 >= len(raw) {
				return text{}, false
			}
			if _, err := hex.Decode(b[:], raw[i+1:i+3]); err != nil {
				return text{}, false
			}
			t.plain = append(t.plain, b[0])
			i += 2
		default:
			t.plain = append(t.plain, raw[i])
		}
	}
	return t, true
}

// write puts what was replaced back in its place. changed has the length of plain, and every rune of it the width of the one that it replaces.
func (t text) write(changed []byte) {
	if t.at == nil {
		copy(t.raw, changed)
		return
	}
	for i := 0; i < len(changed); {
		r, width := utf8.DecodeRune(changed[i:])
		if !bytes.Equal(changed[i:i+width], t.plain[i:i+width]) {
			t.put(i, width, r)
		}
		i += width
	}
}

// put writes one rune, in the form that the replaced one has.
func (t text) put(i, width int, r rune) {
	at := t.at[i]
	if t.raw[at] == '\\' {
		const digits = "0123456789abcdef"
		for j := range 4 {
			t.raw[int(at)+2+j] = digits[r>>(12-4*j)&15]
		}
		return
	}
	var buf [utf8.UTFMax]byte
	utf8.EncodeRune(buf[:], r)
	for j := range width {
		to := int(t.at[i+j])
		if t.raw[to] != '%' {
			t.raw[to] = buf[j]
			continue
		}
		const digits = "0123456789ABCDEF"
		t.raw[to+1], t.raw[to+2] = digits[buf[j]>>4], digits[buf[j]&15]
	}
}
