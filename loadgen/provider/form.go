package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// mustCompileForm reads bodies/folder/name.json, an object of strings, as the template of an application/x-www-form-urlencoded body
// (https://url.spec.whatwg.org/#urlencoded-serializing): its members in their order. What is literal is escaped now, what a slot appends when it is rendered.
func mustCompileForm[T any](folder, name string, resolve func(name string) slot[T]) *template[T] {
	src, err := expand(folder, name, "")
	if err == nil {
		src, err = formSource(src)
	}
	if err == nil {
		var t *template[T]
		if t, err = compile(src, func(name string) slot[T] { return escaped(resolve(name)) }); err == nil {
			return t
		}
	}
	panic(fmt.Sprintf("provider: compile bodies/%s/%s.json as a form: %v", folder, name, err))
}

// formSource turns an object of strings into the source of a form, with its slots left as they are.
func formSource(object string) (string, error) {
	d := json.NewDecoder(strings.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return "", errors.New("a form's template is one object")
	}
	var form strings.Builder
	for d.More() {
		name, err := d.Token() // always a string
		if err != nil {
			return "", err
		}
		token, err := d.Token()
		value, ok := token.(string)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", fmt.Errorf("the members of a form's template are strings, and %v is not", name)
		}
		if form.Len() > 0 {
			form.WriteByte('&')
		}
		form.WriteString(url.QueryEscape(fmt.Sprint(name)) + "=")
		at := 0
		for _, m := range slotPattern.FindAllStringIndex(value, -1) {
			form.WriteString(url.QueryEscape(value[at:m[0]]) + value[m[0]:m[1]])
			at = m[1]
		}
		if strings.Contains(value[at:], "${") {
			return "", fmt.Errorf("misspelt slot in %q", value)
		}
		form.WriteString(url.QueryEscape(value[at:]))
	}
	_, err := d.Token()
	return form.String(), err
}

// escaped is a slot of a form. Unlike in JSON, the text may be any: it is escaped here.
func escaped[T any](s slot[T]) slot[T] {
	if s == nil {
		return nil
	}
	return func(dst []byte, v *T) []byte {
		start := len(dst)
		return escapeForm(s(dst, v), start)
	}
}

// escapeForm escapes everything from start on, in place and from behind.
func escapeForm(b []byte, start int) []byte {
	const digits = "0123456789ABCDEF"
	grow := 0
	for _, c := range b[start:] {
		if !plainInForm(c) && c != ' ' {
			grow += 2
		}
	}
	from := len(b)
	b = append(b, make([]byte, grow)...)
	for to := len(b); from > start; {
		from--
		switch c := b[from]; {
		case plainInForm(c):
			to--
			b[to] = c
		case c == ' ':
			to--
			b[to] = '+'
		default:
			to -= 3
			b[to], b[to+1], b[to+2] = '%', digits[c>>4], digits[c&15]
		}
	}
	return b
}

// plainInForm reports whether a character stands for itself: those of net/url.QueryEscape.
func plainInForm(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

// pair is one parameter of a form.
type pair struct{ name, value string }

// formPairs decodes a form, sorted by name and then by value, without repetitions. It takes everything: what cannot be decoded stands for itself.
func formPairs(body []byte) []pair {
	pairs := make([]pair, 0, 32)
	for part := range strings.SplitSeq(string(body), "&") {
		if name, value, _ := strings.Cut(part, "="); part != "" {
			pairs = append(pairs, pair{unescapeForm(name), unescapeForm(value)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if c := strings.Compare(a.name, b.name); c != 0 {
			return c
		}
		return strings.Compare(a.value, b.value)
	})
	return slices.Compact(pairs)
}

func unescapeForm(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// cutForm leaves the first half of what was rendered since start, and in it the begin of an escape that never ends.
func cutForm(body []byte, start int) []byte {
	return append(cut(body, start), '%')
}

// formTamperer is tamperer for forms: it changes a digit of the number that is, or begins, the first of the named parameters.
func formTamperer(names ...string) func([]byte) {
	return func(body []byte) {
		for _, name := range names {
			for rest := body; len(rest) > 0; {
				if value, ok := bytes.CutPrefix(rest, []byte(name+"=")); ok && changeDigit(value) {
					return
				}
				next := bytes.IndexByte(rest, '&')
				if next < 0 {
					break
				}
				rest = rest[next+1:]
			}
		}
	}
}
