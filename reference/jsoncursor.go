package reference

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// maxJSONDepth is how deeply a body may nest. It bounds the stack that hostile input can claim; the providers' real bodies nest less than twenty deep.
const maxJSONDepth = 512

// jsonCursor walks over JSON text once, from left to right, checks all of it against RFC 8259 and copies only what is asked for.
//
// A receiver needs three or four fields of a body and the certainty that the rest is JSON. encoding/json reads such a
// body twice (once to validate, once to decode) and builds what nobody wants; BenchmarkExtract shows the difference.
//
// After the first error bad is set, every method returns zero values and every loop ends. The cursor is for one goroutine.
type jsonCursor struct {
	data  []byte
	pos   int
	depth int
	bad   bool
}

// peek skips white space and returns the first byte of the next token, 0 at the end or after an error.
func (c *jsonCursor) peek() byte {
	if c.bad {
		return 0
	}
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; b {
		case ' ', '\n', '\r', '\t':
			c.pos++
		default:
			return b
		}
	}
	return 0
}

// done reports whether the text was well formed and nothing follows.
func (c *jsonCursor) done() bool {
	c.peek()
	return !c.bad && c.pos == len(c.data)
}

func (c *jsonCursor) fail() { c.bad = true }

// expect consumes one byte after white space.
func (c *jsonCursor) expect(b byte) {
	if c.peek() != b {
		c.fail()
		return
	}
	c.pos++
}

// enter and leave bound the depth of nesting.
func (c *jsonCursor) enter() {
	c.pos++
	if c.depth++; c.depth > maxJSONDepth {
		c.fail()
	}
}

func (c *jsonCursor) leave() {
	c.pos++
	c.depth--
}

// members calls yield with the key of each member of the object at the cursor, for use as "for key := range
// c.members". The loop's body may consume the value with one call; if it does not, the value is skipped. What
// is not an object is skipped as a whole. The key is valid until the next call.
func (c *jsonCursor) members(yield func(key []byte) bool) {
	if c.peek() != '{' {
		c.skip()
		return
	}
	c.enter()
	wanted := true
	for first := true; ; first = false {
		if c.peek() == '}' && first {
			break
		}
		key := c.key()
		if c.expect(':'); c.bad {
			return
		}
		before := c.pos
		if wanted {
			wanted = yield(key)
		}
		if c.pos == before {
			c.skip()
		}
		if c.peek() != ',' {
			break
		}
		c.pos++
	}
	if c.peek() != '}' {
		c.fail()
		return
	}
	c.leave()
}

// items calls yield before each item of the array at the cursor, under the same rules as members.
func (c *jsonCursor) items(yield func(index int) bool) {
	if c.peek() != '[' {
		c.skip()
		return
	}
	c.enter()
	wanted := true
	for i := 0; ; i++ {
		if c.peek() == ']' && i == 0 {
			break
		}
		if c.bad {
			return
		}
		before := c.pos
		if wanted {
			wanted = yield(i)
		}
		if c.pos == before {
			c.skip()
		}
		if c.peek() != ',' {
			break
		}
		c.pos++
	}
	if c.peek() != ']' {
		c.fail()
		return
	}
	c.leave()
}

// key reads a member's name.
func (c *jsonCursor) key() []byte {
	if c.peek() != '"' {
		c.fail()
		return nil
	}
	quoted, escaped := c.quoted()
	if c.bad {
		return nil
	}
	if escaped {
		return []byte(unquote(quoted))
	}
	return quoted[1 : len(quoted)-1]
}

// skip consumes one value of any kind.
func (c *jsonCursor) skip() {
	switch b := c.peek(); {
	case b == '"':
		c.quoted()
	case b == '{':
		c.members(func([]byte) bool { return true })
	case b == '[':
		c.items(func(int) bool { return true })
	case b == '-' || b >= '0' && b <= '9':
		c.number()
	case b == 't':
		c.literal("true")
	case b == 'f':
		c.literal("false")
	case b == 'n':
		c.literal("null")
	default:
		c.fail()
	}
}

// raw consumes one value and returns its bytes, which belong to the text.
func (c *jsonCursor) raw() []byte {
	c.peek()
	start := c.pos
	c.skip()
	if c.bad {
		return nil
	}
	return c.data[start:c.pos:c.pos]
}

// text consumes one value and returns it if it is a string, else "".
func (c *jsonCursor) text() string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	quoted, escaped := c.quoted()
	switch {
	case c.bad:
		return ""
	case escaped:
		return unquote(quoted)
	default:
		return string(quoted[1 : len(quoted)-1])
	}
}

// scalar consumes one value and returns the text of a string or the digits of a number, else "": ids come as either.
func (c *jsonCursor) scalar() string {
	switch b := c.peek(); {
	case b == '"':
		return c.text()
	case b == '-' || b >= '0' && b <= '9':
		return string(c.raw())
	default:
		c.skip()
		return ""
	}
}

// integer consumes one value and returns its bytes if it is a number without fraction and exponent, else nil.
func (c *jsonCursor) integer() []byte {
	number := c.raw()
	for i, b := range number {
		if (b < '0' || b > '9') && (b != '-' || i != 0) {
			return nil
		}
	}
	return number
}

// millis consumes a point in time, RFC 3339 text or whole Unix seconds, and returns Unix milliseconds; 0 for anything else.
func (c *jsonCursor) millis() int64 {
	if c.peek() == '"' {
		return parseMillis(c.text())
	}
	seconds, err := strconv.ParseInt(string(c.integer()), 10, 64)
	if err != nil || seconds < 0 || seconds > maxUnixSeconds {
		return 0
	}
	return seconds * 1000
}

// maxUnixSeconds is the end of the year 9999; what is larger is not a time in seconds.
const maxUnixSeconds = 253402300799

// parseMillis reads RFC 3339 time, with "T" or a space between date and time, as Unix milliseconds; 0 if it is none.
func parseMillis(text string) int64 {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, err = time.Parse("2006-01-02 15:04:05Z07:00", text)
	}
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// quoted consumes a string, returns it with its quotes and says whether it holds an escape.
func (c *jsonCursor) quoted() (text []byte, escaped bool) {
	data, start := c.data, c.pos
	for i := plainEnd(data, start+1); i < len(data); i = plainEnd(data, i+1) {
		b := data[i]
		switch {
		case b == '"':
			c.pos = i + 1
			return data[start:c.pos], escaped
		case b == '\\':
			escaped = true
			width := escapeWidth(data[i+1:])
			if width == 0 {
				c.fail()
				return nil, false
			}
			i += width
		case b < ' ':
			c.fail()
			return nil, false
		}
	}
	c.fail()
	return nil, false
}

// plainEnd goes on from an index to the next byte that means something in a string: a quote, a backslash or a control character. It may stop before one. It looks
// at eight bytes at a time, since most of a body is in strings: of x-n in each byte, the high bit tells where x was less than n and its own high bit was not set
// (https://graphics.stanford.edu/~seander/bithacks.html#HasLessInWord); only bytes above such a one can be mistaken, and the lowest is what is asked for.
func plainEnd(data []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		word := binary.LittleEndian.Uint64(data[i:])
		quote, slash := word^(ones*'"'), word^(ones*'\\')
		found := ((word-ones*' ')&^word | (quote-ones)&^quote | (slash-ones)&^slash) & high
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	return i
}

// escapeWidth is the length of what follows a backslash, 0 if it is not an escape.
func escapeWidth(after []byte) int {
	if len(after) == 0 {
		return 0
	}
	if after[0] != 'u' {
		if strings.IndexByte(`"\/bfnrt`, after[0]) < 0 {
			return 0
		}
		return 1
	}
	if len(after) < 5 {
		return 0
	}
	for _, b := range after[1:5] {
		if !isHex(b) {
			return 0
		}
	}
	return 5
}

// unquote resolves the escapes of a string that was checked before.
func unquote(quoted []byte) string {
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return ""
	}
	return text
}

func (c *jsonCursor) literal(word string) {
	if len(c.data)-c.pos < len(word) || string(c.data[c.pos:c.pos+len(word)]) != word {
		c.fail()
		return
	}
	c.pos += len(word)
}

// number consumes a number: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
func (c *jsonCursor) number() {
	if c.data[c.pos] == '-' {
		c.pos++
	}
	if c.pos < len(c.data) && c.data[c.pos] == '0' {
		c.pos++
	} else {
		c.digits()
	}
	if c.pos < len(c.data) && c.data[c.pos] == '.' {
		c.pos++
		c.digits()
	}
	if c.pos < len(c.data) && c.data[c.pos]|0x20 == 'e' {
		c.pos++
		if c.pos < len(c.data) && (c.data[c.pos] == '+' || c.data[c.pos] == '-') {
			c.pos++
		}
		c.digits()
	}
}

// digits consumes at least one digit.
func (c *jsonCursor) digits() {
	start := c.pos
	for c.pos < len(c.data) && c.data[c.pos] >= '0' && c.data[c.pos] <= '9' {
		c.pos++
	}
	if c.pos == start {
		c.fail()
	}
}

// isHex reports whether b is a hexadecimal digit.
func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}
