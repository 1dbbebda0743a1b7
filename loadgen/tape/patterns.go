package tape

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// span is a part of a text that a pattern says is personal.
type span struct {
	start, end int
	class      class
	// card: digits that pass for a payment card's. param: the value of a URL's parameter, which may be percent-encoded.
	card, param bool
	// as is what it becomes, nil if that is still to be drawn.
	as []byte
}

// pattern finds one kind of personal data by what it looks like.
type pattern struct {
	class class
	card  bool
	// hint is a cheap question that most texts answer with no.
	hint func(h *hints) bool
	re   *regexp.Regexp
	// group is the part of a match that is replaced.
	group int
	// accept looks at a match more closely and may take something off its ends. Nil: every match is meant.
	accept func(text []byte, m []int) bool
}

// hints are what one look at a text tells.
type hints struct {
	at, percent, params, jwt, slash, secret bool
	digits, letters, colons, dots           int
}

// patterns in the order in which they win where two of them overlap.
//
// Note: phone numbers without a plus, brackets or separators are found by their member's name only. Ten digits in a row are an id or a time more often than a phone.
var patterns = []pattern{
	{shaped, false, func(h *hints) bool { return h.jwt }, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*`), 0, nil},
	{shaped, false, func(h *hints) bool { return h.letters > 13 }, regexp.MustCompile(`(?i)\bbearer +([A-Za-z0-9._~+/=-]{8,})`), 1, hasDigit},
	{shaped, false, func(h *hints) bool { return h.secret }, knownSecrets, 1, nil},
	{shaped, false, func(h *hints) bool { return h.slash && h.at }, regexp.MustCompile(`://[^/\s:@]+:([^/\s@]+)@`), 1, nil},
	{email, false, func(h *hints) bool { return h.dots > 0 && (h.at || h.percent) },
		regexp.MustCompile("(?:[\\pL\\pN._+'!#$*^{|}~`-]|%2[Bb])+(?:@|%40)(?:[\\pL\\pN](?:[\\pL\\pN-]*[\\pL\\pN])?\\.)+\\pL[\\pL\\pN-]*\\pL"), 0, isMail},
	{shaped, true, func(h *hints) bool { return h.digits >= 13 },
		regexp.MustCompile(`\d{13,19}|\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}(?:[ -]\d{1,3})?|\d{4}[ -]\d{6}[ -]\d{4,5}`), 0, isCardAlone},
	{network, false, func(h *hints) bool { return h.dots >= 3 && h.digits >= 4 }, regexp.MustCompile(`\d{1,3}(?:\.\d{1,3}){3}`), 0, isIP},
	{network, false, func(h *hints) bool { return h.colons >= 2 }, regexp.MustCompile(`(?:[0-9A-Fa-f]{0,4}:){2,7}(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f]{0,4})`), 0, isIP},
	{phone, false, func(h *hints) bool { return h.digits >= 8 }, regexp.MustCompile(`(?:\+|%2[Bb]|\b00)[1-9](?:[  ().\-/]{0,2}\d){6,15}`), 0, isInternational},
	{phone, false, func(h *hints) bool { return h.digits >= 9 },
		regexp.MustCompile(`\(?\d{3}\)?[  .-]\d{3}[ .-]\d{4}|\(\d{3}\)\d{3}[ .-]\d{4}|\(?0\d{1,4}\)?[ /-]\d{3,4}[ -]?\d{3,8}|0\d(?:[ .-]\d{2}){4}`), 0, isNational},
}

// knownSecrets are tokens that say by their beginning whose they are.
var knownSecrets = regexp.MustCompile(`\b(?:sk_live_|sk_test_|rk_live_|rk_test_|whsec_|gh[opusr]_|github_pat_|glpat-|xox[abeprs]-|shp(?:at|ss|ca|pa)_|AKIA|AIza|SG\.|pat-(?:na|eu)\d-)([A-Za-z0-9_.+/=-]{10,})`)

// secretBegins are what one of knownSecrets has somewhere.
var secretBegins = [][]byte{
	[]byte("k_live_"), []byte("k_test_"), []byte("whsec_"), []byte("ghp_"), []byte("gho_"), []byte("ghu_"), []byte("ghs_"), []byte("ghr_"), []byte("github_pat_"),
	[]byte("glpat-"), []byte("xox"), []byte("shpat_"), []byte("shpss_"), []byte("shpca_"), []byte("shppa_"), []byte("AKIA"), []byte("AIza"), []byte("SG."), []byte("pat-"),
}

// look collects the hints of a text.
func look(text []byte) hints {
	h := hints{jwt: bytes.Contains(text, []byte("eyJ"))}
	for _, begin := range secretBegins {
		h.secret = h.secret || bytes.Contains(text, begin)
	}
	for i, c := range text {
		switch {
		case c >= '0' && c <= '9':
			h.digits++
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			h.letters++
		case c == '@':
			h.at = true
		case c == '%':
			h.percent = h.percent || i+2 < len(text) && text[i+1] == '4' && text[i+2] == '0'
		case c == '.':
			h.dots++
		case c == ':':
			h.colons++
		case c == '/':
			h.slash = true
		case c == '?' || c == '&':
			h.params = true
		}
	}
	return h
}

// find returns what is personal in a text by its looks, in order and without overlaps.
func find(text []byte, skip func(p *pattern) bool) []span {
	h := look(text)
	var found []span
	if h.params {
		found = findParams(text)
	}
	for i := range patterns {
		if p := &patterns[i]; p.hint(&h) && (skip == nil || !skip(p)) {
			found = p.find(text, found)
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.start - b.start })
	return found
}

// find adds the pattern's matches that overlap with none of those found.
func (p *pattern) find(text []byte, found []span) []span {
	for from := 0; from < len(text); {
		m := p.re.FindSubmatchIndex(text[from:])
		if m == nil {
			break
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += from
			}
		}
		if p.accept != nil && !p.accept(text, m) {
			from = p.next(text, m)
			continue
		}
		s := span{start: m[2*p.group], end: m[2*p.group+1], class: p.class, card: p.card}
		if !overlaps(found, s) {
			found = append(found, s)
		}
		from = m[1]
	}
	return found
}

// next is where to look on behind a match that was not meant: within it, as the digits may be grouped otherwise, but behind its first run of digits, so
// that no part of a longer number is taken for a whole one. Mail addresses have no bound, and within one that was not meant there is no other.
func (p *pattern) next(text []byte, m []int) int {
	if p.class == email {
		return m[1]
	}
	at := m[0]
	for at < m[1] && text[at] >= '0' && text[at] <= '9' {
		at++
	}
	return max(at, m[0]+1)
}

func overlaps(found []span, s span) bool {
	return slices.ContainsFunc(found, func(f span) bool { return s.start < f.end && f.start < s.end })
}

// params are the parameters of URLs within a text.
var params = regexp.MustCompile(`[?&;]([A-Za-z0-9_.\-\[\]]{1,64})=([^&#;\s"'<>\\]+)`)

// findParams returns the values of URL parameters that their names give away. In a URL, key, sig, hash and code are credentials too.
func findParams(text []byte) []span {
	var found []span
	for _, m := range params.FindAllSubmatchIndex(text, -1) {
		c := classify(string(text[m[2]:m[3]]))
		switch string(bytes.ToLower(text[m[2]:m[3]])) {
		case "key", "sig", "hash", "code", "sign":
			c = shaped
		}
		if c == shaped || c == name || c == address || c == phone {
			found = append(found, span{start: m[4], end: m[5], class: c, param: true})
		}
	}
	return found
}

func hasDigit(text []byte, m []int) bool {
	return bytes.ContainsAny(text[m[2]:m[3]], "0123456789")
}

// isMail keeps git@github.com, which is an account of a machine, and leaves the end of a percent-encoded byte to what stands before the address.
func isMail(text []byte, m []int) bool {
	if m[0] > 0 && text[m[0]-1] == '%' && m[1]-m[0] > 2 {
		m[0] += 2
	}
	found := text[m[0]:m[1]]
	return !bytes.HasPrefix(found, []byte("git@")) && found[0] != '@' && found[0] != '%'
}

// alone reports whether no letter or digit touches the match.
func alone(text []byte, m []int) bool {
	before, _ := utf8.DecodeLastRune(text[:m[0]])
	after, _ := utf8.DecodeRune(text[m[1]:])
	return !isWord(before) && !isWord(after)
}

func isWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_'
}

func isCardAlone(text []byte, m []int) bool {
	return alone(text, m) && isCard(text[m[0]:m[1]])
}

// isCard reports digits that have a length and a beginning which payment networks use, and the right check digit (ISO/IEC 7812-1).
//
// Note: Visa's numbers of 13 digits are left out. There are hardly any, and Shopify's ids look like them.
func isCard(text []byte) bool {
	digits := onlyDigits(text)
	n := len(digits)
	if n < 14 || n > 19 || !luhn(digits) {
		return false
	}
	two, four := number(digits[:2]), number(digits[:4])
	switch {
	case digits[0] == '4': // Visa
		return n == 16 || n == 19
	case two >= 51 && two <= 55, four >= 2221 && four <= 2720: // Mastercard
		return n == 16
	case two == 34 || two == 37: // American Express
		return n == 15
	case two == 36, two == 38, two == 39, four >= 3000 && four <= 3059: // Diners Club
		return n == 14 || n == 16
	case four >= 3528 && four <= 3589, four == 6011, two == 64, two == 65, two == 62: // JCB, Discover, UnionPay
		return n >= 16
	case two == 50 || two >= 56 && two <= 58 || two == 63 || two == 67: // Maestro
		return n == 16 || n == 18 || n == 19
	}
	return false
}

// luhn reports whether the last digit is the check digit of the others.
func luhn(digits []byte) bool { return luhnSum(digits)%10 == 0 }

func luhnSum(digits []byte) int {
	sum := 0
	for i, c := range digits {
		d := int(c - '0')
		if (len(digits)-i)%2 == 0 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum
}

func number(digits []byte) int {
	n := 0
	for _, c := range digits {
		n = 10*n + int(c-'0')
	}
	return n
}

func onlyDigits(text []byte) []byte {
	var digits []byte
	for _, c := range text {
		if c >= '0' && c <= '9' {
			digits = append(digits, c)
		}
	}
	return digits
}

// isIP reports an address that stands alone and is one. Five numbers with dots between them are a version.
func isIP(text []byte, m []int) bool {
	if text[m[1]-1] == ':' && (m[1]-m[0] < 2 || text[m[1]-2] != ':') {
		m[1]--
	}
	if !alone(text, m) {
		return false
	}
	before, after := text[:m[0]], text[m[1]:]
	if bytes.HasSuffix(before, []byte(".")) || len(after) > 1 && after[0] == '.' && after[1] >= '0' && after[1] <= '9' {
		return false
	}
	found := text[m[0]:m[1]]
	_, err := netip.ParseAddr(string(found))
	return err == nil && len(found) > 2
}

// isInternational reports a number with its country's code: 8 to 15 digits (ITU-T E.164). With 00 instead of the plus it has to have separators. What was
// taken for more digits of the number is given back at a separator.
func isInternational(text []byte, m []int) bool {
	for {
		found := text[m[0]:m[1]]
		digits, prefix := onlyDigits(found), 0
		switch {
		case found[0] == '%':
			prefix = 1 // the 2 of %2B
		case found[0] == '0':
			prefix = 2
		}
		n := len(digits) - prefix
		if n >= 8 && n <= 15 && alone(text, m) {
			return prefix != 2 || len(digits) != len(found)
		}
		cut := bytes.LastIndexAny(found, "  ().-/")
		if n < 8 || cut < 0 {
			return false
		}
		m[1] = m[0] + len(bytes.TrimRight(found[:cut], "  ().-/"))
	}
}

func isNational(text []byte, m []int) bool {
	before, after := text[:m[0]], text[m[1]:]
	if len(before) > 0 && bytes.IndexByte([]byte("-./+"), before[len(before)-1]) >= 0 || len(after) > 1 && bytes.IndexByte([]byte("-./"), after[0]) >= 0 && isAlnum(after[1]) {
		return false
	}
	n := len(onlyDigits(text[m[0]:m[1]]))
	return alone(text, m) && n >= 9 && n <= 13
}
