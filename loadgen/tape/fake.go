package tape

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"math/rand/v2"
	"unicode"
	"unicode/utf8"
)

// faker makes replacements. A replacement has the kind and exactly the length of what it replaces, and every character the width in UTF-8 of the one that it
// replaces. It is drawn from a keyed hash of the value: equal values have equal replacements, and without the key, which is stored nowhere, nobody
// can try values until one fits. It may be used by many goroutines at once.
//
// Replacements belong to nobody, where that can be had: mail domains end in z's, phone numbers begin with a country code or an area code that does not exist,
// addresses are from blocks that are not routed, card numbers are of the first account numbers of a network. A pipeline under test that sends mail sends it nowhere.
type faker struct{ key [sha256.Size]byte }

// attempts bounds how often a replacement is drawn that must not be what it replaces. One character has few others.
const attempts = 8

// draw returns the bits for a value. Values that are equal in normal form share them.
func (f *faker) draw(class byte, normal []byte, attempt int) *rand.Rand {
	mac := hmac.New(sha256.New, f.key[:])
	mac.Write([]byte{class, byte(attempt)})
	mac.Write(normal)
	return rand.New(rand.NewChaCha8([sha256.Size]byte(mac.Sum(nil))))
}

// The kinds of replacements, as the hash tells them apart.
const (
	kindShape = iota
	kindMail
	kindPhone
	kindCard
	kindIP
	kindBirth
)

// replace overwrites a value of a class. What the value looks like comes first: a card's number is one whatever its member is called.
func (f *faker) replace(c class, value []byte) {
	whole := find(value, nil)
	isWhole := len(whole) == 1 && whole[0].start == 0 && whole[0].end == len(value)
	switch {
	case isWhole:
		f.span(whole[0], value)
	case c == email:
		f.mailboxes(value, whole)
	case c == phone:
		f.phone(value)
	case c == birth:
		f.birth(value)
	case c == place:
		f.fraction(value)
	case c == shaped:
		f.secret(value)
	default:
		f.shape(value)
	}
}

// mailboxes overwrites addresses and whatever stands around them: "Anna Lopez <anna@example.com>".
func (f *faker) mailboxes(value []byte, found []span) {
	at := 0
	for _, s := range found {
		f.shape(value[at:s.start])
		f.span(s, value[s.start:s.end])
		at = s.end
	}
	f.shape(value[at:])
}

// span overwrites what a pattern found.
func (f *faker) span(s span, value []byte) {
	switch {
	case s.card:
		f.card(value)
	case s.class == email:
		f.mail(value)
	case s.class == phone:
		f.phone(value)
	case s.class == network:
		f.ip(value)
	default:
		f.shape(value)
	}
}

// differ draws until the value is another one. make fills value, which starts as it was.
func (f *faker) differ(kind byte, normal, value []byte, fill func(r *rand.Rand, value []byte)) {
	old := bytes.Clone(value)
	for attempt := range attempts {
		copy(value, old)
		fill(f.draw(kind, normal, attempt), value)
		if !bytes.Equal(old, value) {
			return
		}
	}
}

// shape overwrites letters by letters and digits by digits. Upper and lower case make no difference but their own; what is hexadecimal stays so.
func (f *faker) shape(value []byte) {
	fill := func(r *rand.Rand, value []byte) { letters(r, value, 0, len(value)) }
	if isHexText(value) {
		fill = hexDigits
	}
	f.differ(kindShape, bytes.ToLower(value), value, fill)
}

// secret is shape for a credential: what it begins with says which kind it is ("whsec_", "pi_") and stays.
func (f *faker) secret(value []byte) {
	kind := bytes.IndexByte(value, '_') + 1
	if kind > maxSecretKind || len(value)-kind < 2*maxSecretKind || bytes.ContainsAny(value[:kind], "0123456789") {
		kind = 0
	}
	f.shape(value[kind:])
}

// maxSecretKind is how long the beginning of a credential may be, its underscore included.
const maxSecretKind = 10

// isHexText reports text that is a hexadecimal number or a GUID, and long enough not to be so by chance.
func isHexText(value []byte) bool {
	for _, c := range value {
		if !isHex(c) && c != '-' {
			return false
		}
	}
	return len(value) >= 16
}

func hexDigits(r *rand.Rand, value []byte) {
	for i, c := range value {
		if isHex(c) {
			value[i] = hexDigit(r, c)
		}
	}
}

// letters fills value[from:to].
func letters(r *rand.Rand, value []byte, from, to int) {
	for i := from; i < to; {
		c, width := utf8.DecodeRune(value[i:to])
		switch {
		case c >= '0' && c <= '9':
			value[i] = digit(r, byte(c))
		case c < utf8.RuneSelf:
			value[i] = letter(r, byte(c))
		case width > 1 && (unicode.IsLetter(c) || unicode.IsNumber(c)):
			utf8.AppendRune(value[i:i], wide(r, width, c))
		}
		i += width
	}
}

// digit draws a digit. One that is not 0 stays so: it may be the first of a number.
func digit(r *rand.Rand, old byte) byte {
	if old == '0' {
		return '0' + byte(r.IntN(10))
	}
	return '1' + byte(r.IntN(9))
}

// letter draws a letter of the same case; what is no letter stays.
func letter(r *rand.Rand, old byte) byte {
	switch {
	case old >= 'a' && old <= 'z':
		return 'a' + byte(r.IntN(26))
	case old >= 'A' && old <= 'Z':
		return 'A' + byte(r.IntN(26))
	default:
		return old
	}
}

// wide draws a letter of two or three bytes. Letters of four bytes are historic scripts and rare ideographs, and stay.
func wide(r *rand.Rand, width int, old rune) rune {
	switch width {
	case 2:
		return 'à' + rune(r.IntN('ö'-'à'+1))
	case 3:
		return '一' + rune(r.IntN(4096))
	default:
		return old
	}
}

// mail overwrites a mail address. Its top-level domain becomes z's: none consists of them.
func (f *faker) mail(value []byte) {
	normal := bytes.ToLower(value)
	at, sign := bytes.LastIndexByte(value, '@'), 1
	if at < 0 {
		at, sign = bytes.LastIndex(value, []byte("%40")), 3
		normal = bytes.Replace(normal, []byte("%40"), []byte("@"), 1)
	}
	normal = bytes.Replace(normal, []byte("%2b"), []byte("+"), 1)
	dot := bytes.LastIndexByte(value, '.')
	if at < 0 || dot < at {
		f.shape(value) // nothing that a pattern found, but a name said so
		return
	}
	f.differ(kindMail, normal, value, func(r *rand.Rand, value []byte) {
		local := 0
		if plus := bytes.Index(normal[:at], []byte("+")); plus >= 0 && value[plus] == '%' { // %2B stays
			letters(r, value, 0, plus)
			local = plus + len("%2B")
		}
		letters(r, value, local, at)
		letters(r, value, at+sign, dot)
		for i := dot + 1; i < len(value); i++ {
			if isAlnum(value[i]) {
				value[i] = 'z'
			}
		}
	})
}

// phone overwrites the digits of a phone number. The replacement begins with +999, which ITU-T E.164 assigns to nobody, or with 555, which is no area code.
func (f *faker) phone(value []byte) {
	from, prefix := 0, "555"
	switch {
	case bytes.HasPrefix(value, []byte("+")):
		prefix = "999"
	case bytes.HasPrefix(value, []byte("%2")):
		from, prefix = 3, "999"
	case bytes.HasPrefix(value, []byte("00")):
		from, prefix = 2, "999"
	}
	f.differ(kindPhone, onlyDigits(value[from:]), value, func(r *rand.Rand, value []byte) {
		n := 0
		for i := from; i < len(value); i++ {
			switch c := value[i]; {
			case c < '0' || c > '9':
				value[i] = letter(r, c)
				continue
			case n < len(prefix):
				value[i] = prefix[n]
			default:
				value[i] = '0' + byte(r.IntN(10))
			}
			n++
		}
	})
}

// card overwrites the digits of a card number: the network stays, four zeros follow, and the check digit is right.
func (f *faker) card(value []byte) {
	digits := onlyDigits(value)
	f.differ(kindCard, digits, value, func(r *rand.Rand, value []byte) {
		fake := bytes.Clone(digits)
		for i := 2; i < len(fake); i++ {
			fake[i] = '0'
			if i >= 6 {
				fake[i] += byte(r.IntN(10))
			}
		}
		last := len(fake) - 1
		fake[last] = '0'
		fake[last] += byte((10 - luhnSum(fake)%10) % 10)
		n := 0
		for i, c := range value {
			if c >= '0' && c <= '9' {
				value[i] = fake[n]
				n++
			}
		}
	})
}

// ip overwrites an address, which stays one. The first number of an IPv4 address becomes 0, 10 or 240 to 254 by its length, and the first of an IPv6 address,
// where it has four digits, begins with fd: none of these is routed (https://www.iana.org/assignments/iana-ipv4-special-registry, RFC 4193).
func (f *faker) ip(value []byte) {
	f.differ(kindIP, bytes.ToLower(value), value, func(r *rand.Rand, value []byte) {
		colon := bytes.LastIndexByte(value, ':')
		if bytes.IndexByte(value, '.') < 0 {
			colon = len(value)
		}
		hexDigits(r, value[:max(colon, 0)])
		if first := bytes.IndexByte(value, ':'); first == 4 {
			copy(value, "fd")
		}
		if colon < len(value) {
			dotted(r, value[colon+1:])
		}
	})
}

// dotted overwrites the four numbers of an IPv4 address and keeps their lengths.
func dotted(r *rand.Rand, value []byte) {
	for i, part := range bytes.Split(value, []byte(".")) {
		n := 0
		switch {
		case len(part) == 1:
			n = r.IntN(10)
		case len(part) == 2:
			n = 10 + r.IntN(90)
		default:
			n = 100 + r.IntN(156)
		}
		if i == 0 {
			n = [...]int{0, 0, 10, 240 + r.IntN(15)}[min(len(part), 3)]
		}
		for j := len(part) - 1; j >= 0; j-- {
			part[j] = '0' + byte(n%10)
			n /= 10
		}
	}
}

func hexDigit(r *rand.Rand, old byte) byte {
	switch {
	case old <= '9':
		return digit(r, old)
	default:
		return old&0x20 | 0x40 + byte(1+r.IntN(6)) // a to f in its own case
	}
}

// birth overwrites the digits of a date: one that begins with year, month and day stays a date.
func (f *faker) birth(value []byte) {
	f.differ(kindBirth, onlyDigits(value), value, func(r *rand.Rand, value []byte) {
		letters(r, value, 0, len(value))
		if len(value) >= 10 && value[4] == value[7] && isDigits(string(value[:4])+string(value[5:7])+string(value[8:10])) {
			put := func(at, n int) { value[at], value[at+1] = '0'+byte(n/10), '0'+byte(n%10) }
			put(0, 19)
			put(2, 30+r.IntN(70))
			put(5, 1+r.IntN(12))
			put(8, 1+r.IntN(28))
		}
	})
}

// fraction overwrites the digits behind the decimal point: the degree stays, the place does not.
func (f *faker) fraction(value []byte) {
	point := bytes.IndexByte(value, '.') + 1
	if point == 0 {
		return
	}
	f.differ(kindShape, value, value, func(r *rand.Rand, value []byte) {
		for i := point; i < len(value) && value[i] >= '0' && value[i] <= '9'; i++ {
			value[i] = '0' + byte(r.IntN(10))
		}
	})
}

// number overwrites the digits of a JSON number up to its exponent; its length, sign and point stay, and it does not begin with another zero.
func (f *faker) number(c class, value []byte) {
	end := bytes.IndexAny(value, "eE")
	if end < 0 {
		end = len(value)
	}
	mantissa := value[:end]
	switch {
	case c == place:
		f.fraction(mantissa)
	case isCard(mantissa):
		f.card(mantissa)
	case c == phone:
		f.phone(bytes.TrimPrefix(mantissa, []byte("-")))
	case len(mantissa) > 1 || c != plain:
		f.differ(kindShape, mantissa, mantissa, func(r *rand.Rand, value []byte) {
			whole := bytes.IndexByte(value, '.')
			if whole < 0 {
				whole = len(value)
			}
			zero := bytes.HasPrefix(bytes.TrimPrefix(value, []byte("-")), []byte("0"))
			for i, d := range value {
				if d >= '0' && d <= '9' && (!zero || i > whole) {
					value[i] = digit(r, d)
				}
			}
		})
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
