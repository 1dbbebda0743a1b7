package provider

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// customPiece is what a template of a custom provider replaces. In JSON no letter follows an opening brace, so that bodies need no escapes.
var customPiece = regexp.MustCompile(`\{([A-Za-z][^{}"]*)\}`)

// compileText splits a template of a custom provider. names are those of its slots.
//
// Note: the built-in bodies write ${name}, because they are files that a JSON formatter must be able to read. What a user writes into a scenario should not need
// a second sign, and is no file.
func compileText[T any](text string, resolve func(piece string) slot[T]) (t *template[T], names []string, err error) {
	t = &template[T]{}
	at := 0
	for _, m := range customPiece.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		s := resolve(name)
		if s == nil {
			return nil, nil, fmt.Errorf("unknown piece {%s}", name)
		}
		t.pieces, t.slots = append(t.pieces, text[at:m[0]]), append(t.slots, s)
		names = append(names, name)
		at = m[1]
	}
	t.pieces = append(t.pieces, text[at:])
	return t, names, nil
}

// inPiece are the characters of types, versions and attempts. What follows one of them must be none of these, so that its end can be seen.
const inPiece = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:/-"

// tamperer returns a function that changes one character of a rendered body: of its padding if it has any, else of its resource, time, version or attempt,
// never of its id or type. It is nil where there is nothing to change, or where it could not be found again.
func (r *custom) tamperer() func([]byte) {
	if r.body == nil || r.alterable() < 0 {
		return nil
	}
	for i, piece := range r.pieces {
		next := r.body.pieces[i+1]
		if _, fixed := r.width(piece); !fixed && (next == "" || strings.IndexByte(inPiece, next[0]) >= 0) {
			return nil
		}
	}
	return r.tamper
}

// alterable is the index of the piece that a forger changes, -1 without one.
func (r *custom) alterable() int {
	best, rank := -1, 0
	ranks := map[string]int{"resource": 4, "time": 3, "version": 2, "attempt": 1}
	for i, piece := range r.pieces {
		of := ranks[piece]
		if _, pad := padLength(piece); pad {
			of = 5
		}
		if of > rank {
			best, rank = i, of
		}
	}
	return best
}

// width is how long a piece is when it is rendered, false if that varies.
func (r *custom) width(piece string) (int, bool) {
	if n, pad := padLength(piece); pad {
		return n, true
	}
	switch piece {
	case "id":
		return len(r.name) + 1 + 11, true
	case "resource":
		return 1 + 11, true
	case "time":
		return len("2006-01-02T15:04:05Z"), true
	default:
		return 0, false
	}
}

// tamper walks along the template to the piece that is to be changed. A body that was cut has perhaps lost it.
func (r *custom) tamper(body []byte) {
	at := 0
	for i := range r.pieces {
		at += len(r.body.pieces[i])
		if at > len(body) {
			return
		}
		width, fixed := r.width(r.pieces[i])
		if !fixed {
			width = len(body[at:]) - len(bytes.TrimLeft(body[at:], inPiece))
		}
		if i == r.alterable() {
			alter(body[at:min(at+width, len(body))])
			return
		}
		at += width
	}
}

// alter changes the last letter or digit of a text into another of its kind.
func alter(text []byte) {
	for i := len(text) - 1; i >= 0; i-- {
		switch c := text[i]; {
		case c == 'Z' && i == len("2006-01-02T15:04:05"): // A time stays one.
		case c == '9' || c == 'z' || c == 'Z':
			text[i]--
			return
		case c >= '0' && c < '9' || c >= 'a' && c < 'z' || c >= 'A' && c < 'Z':
			text[i]++
			return
		}
	}
}
