package tape

import (
	"bytes"
	"crypto/rand"
	"mime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Scrubber replaces personal data and credentials in requests before they are stored.
//
// It looks at the names of members, parameters and headers (email, phone, first_name, address, ip, token ...), at what values look like (mail addresses, phone
// numbers, IP addresses, payment cards, JSON web tokens, bearer tokens), and at other places of the same body where a value that was replaced occurs again. A
// replacement has the kind and the length of what it replaces; equal values have equal ones within one Scrubber, and different ones in another. Ids, types,
// statuses, amounts, times and the structure stay, to the byte: the body keeps its length, its white space, its order of members and the form of its numbers.
//
// What it cannot see is a name in free text that stands nowhere else in the body.
//
// It may be used by many goroutines at once.
type Scrubber struct{ fake faker }

// NewScrubber returns a scrubber with a new random key, which is kept in memory and nowhere else.
func NewScrubber() *Scrubber {
	s := &Scrubber{}
	_, _ = rand.Read(s.fake.key[:]) // never fails: crypto/rand crashes the program instead
	return s
}

// Body returns the scrubbed copy of a body, or false if it is neither JSON nor a form: then nobody can tell what is in it. A body is JSON if it parses as such,
// whatever its content type says; it is a form if its content type says so and every escape in it is one. The empty body is its own copy.
func (s *Scrubber) Body(contentType string, body []byte) ([]byte, bool) {
	if len(body) == 0 {
		return nil, true
	}
	scrubbed := bytes.Clone(body)
	if nodes, ok := parse(scrubbed); ok {
		s.json(scrubbed, nodes, 0)
		return scrubbed, true
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil || media != "application/x-www-form-urlencoded" {
		return nil, false
	}
	pairs, ok := splitForm(scrubbed)
	if !ok {
		return nil, false
	}
	s.form(pairs)
	return scrubbed, true
}

// Target returns a request target with its query scrubbed like a form. In the path only patterns are replaced: its segments are what the endpoint is known by.
func (s *Scrubber) Target(target string) string {
	scrubbed := []byte(target)
	path, query, _ := bytes.Cut(scrubbed, []byte("?"))
	t, ok := pathText(path)
	if !ok {
		t = text{raw: path, plain: path}
	}
	s.patterned(t, nil)
	if pairs, ok := splitForm(query); ok {
		s.form(pairs)
	} else {
		s.patterned(text{raw: query, plain: query}, nil)
	}
	return string(scrubbed)
}

// Headers returns the headers that may be stored, scrubbed, and the names of the others.
func (s *Scrubber) Headers(fields []Field) (kept []Field, redacted []string) {
	for _, f := range fields {
		switch {
		case names(f.Name):
		case redacts(f.Name):
			if !slices.Contains(redacted, f.Name) {
				redacted = append(redacted, f.Name)
			}
			continue
		case strings.EqualFold(f.Name, "Host"), strings.EqualFold(f.Name, "Content-Type"), strings.EqualFold(f.Name, "Content-Length"):
		default:
			value := []byte(f.Value)
			s.value(leaf{text: text{raw: value, plain: value}, class: classify(f.Name)}, nil)
			f.Value = string(value)
		}
		kept = append(kept, f)
	}
	return kept, redacted
}

// leaf is one value that may have to be replaced.
type leaf struct {
	text  text
	class class
	// depth is how many texts it is nested in: JSON within a string within JSON.
	depth int
}

// maxNested bounds texts within texts.
const maxNested = 4

// value replaces what is personal in a leaf. known are the values that were replaced in this body by their names; nil: there are none.
func (s *Scrubber) value(l leaf, known *known) {
	if whole(l.class, l.text.plain) {
		changed := bytes.Clone(l.text.plain)
		s.fake.replace(l.class, changed)
		l.text.write(changed)
		return
	}
	if l.depth < maxNested && s.nested(l) {
		return
	}
	s.patterned(l.text, func(p *pattern) bool { return p.card && l.class == ident || l.class == agent && p.class == network }, known.unless(l.class))
}

// whole reports whether the whole value is replaced because of its member's name.
func whole(c class, value []byte) bool {
	if !bytes.ContainsFunc(value, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return false
	}
	switch c {
	case email:
		return bytes.IndexByte(value, '@') >= 0
	case phone:
		return len(onlyDigits(value)) >= 5 && bytes.IndexByte(value, '@') < 0
	case name:
		// "#1001" is an order's name, and owner/repository a project's.
		return value[0] != '#' && bytes.IndexByte(value, '/') < 0 && bytes.ContainsFunc(value, unicode.IsLetter)
	case shaped, address, birth, place:
		return true
	default:
		return false
	}
}

// nested scrubs a value that is JSON itself.
func (s *Scrubber) nested(l leaf) bool {
	inner := bytes.TrimSpace(l.text.plain)
	if len(inner) < 2 || inner[0] != '{' && inner[0] != '[' {
		return false
	}
	changed := bytes.Clone(l.text.plain)
	nodes, ok := parse(changed)
	if ok {
		s.json(changed, nodes, l.depth+1)
		l.text.write(changed)
	}
	return ok
}

// patterned replaces what patterns find in a text, and values that are known.
func (s *Scrubber) patterned(t text, skip func(*pattern) bool, known ...*known) {
	found := find(t.plain, skip)
	for _, k := range known {
		found = k.find(t.plain, found)
	}
	if len(found) == 0 {
		return
	}
	changed := bytes.Clone(t.plain)
	for _, f := range found {
		part := changed[f.start:f.end]
		if f.as != nil {
			copy(part, f.as)
			continue
		}
		if inner, ok := formText(part); ok && f.param {
			value := bytes.Clone(inner.plain)
			s.fake.replace(f.class, value)
			inner.write(value)
			continue
		}
		s.fake.span(f, part)
	}
	t.write(changed)
}

// known are values of one body that were replaced because of their names, with what they became. They are looked for in the other values: a shop's link to an
// order carries the order's token, and a subject line greets by name.
type known struct{ old, new [][]byte }

const (
	// maxKnown and minKnown bound how many values are looked for, and how short they may be.
	maxKnown = 256
	minKnown = 3
)

// add remembers a replacement.
func (k *known) add(old, new []byte) {
	if len(k.old) < maxKnown && len(old) >= minKnown && !bytes.Equal(old, new) && !slices.ContainsFunc(k.old, func(o []byte) bool { return bytes.Equal(o, old) }) {
		k.old, k.new = append(k.old, old), append(k.new, new)
	}
}

// addName remembers the replacement of a name, and of its words that begin like names: people are greeted by one of them.
func (k *known) addName(old, new []byte) {
	k.add(old, new)
	from := 0
	for word := range bytes.SplitSeq(old, []byte(" ")) {
		if r, _ := utf8.DecodeRune(word); unicode.IsUpper(r) {
			k.add(word, new[from:from+len(word)])
		}
		from += len(word) + 1
	}
}

// unless is k, but for values that must stay as they are.
func (k *known) unless(c class) *known {
	if c == fixed || c == ident {
		return nil
	}
	return k
}

// find adds the places where known values stand as words.
func (k *known) find(text []byte, found []span) []span {
	if k == nil {
		return found
	}
	for i, old := range k.old {
		for from := 0; ; {
			at := bytes.Index(text[from:], old)
			if at < 0 {
				break
			}
			at += from
			s := span{start: at, end: at + len(old), as: k.new[i]}
			if isWhole(text, s) && !overlaps(found, s) {
				found = append(found, s)
			}
			from = s.end
		}
	}
	return found
}

// isWhole reports whether a span neither begins nor ends within a word.
func isWhole(text []byte, s span) bool {
	before, _ := utf8.DecodeLastRune(text[:s.start])
	after, _ := utf8.DecodeRune(text[s.end:])
	return !isWordLetter(before) && !isWordLetter(after)
}

func isWordLetter(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}
