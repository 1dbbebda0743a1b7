package provider

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// bodies are the body templates: valid JSON, written for people, compacted when they are read. Three things in them are not literal:
//
//	"... ${name} ..."   the text of a slot, inside a string
//	"#{name}"           the JSON of a slot (a number, null, an object), instead of the string
//	"@file arg"         the template file.json of the same folder; ${.x} in it is ${arg.x}, ${.} is ${arg}
//	"@file arg": 0      the same as a member of an object: the file's members instead of the object
//
//go:embed bodies
var bodies embed.FS

// slot appends one value of v. It must append valid JSON, or text that needs no escaping in a JSON string.
type slot[T any] func(dst []byte, v *T) []byte

// template is a body split into literal pieces and slots. It is immutable after compile.
type template[T any] struct {
	// pieces has one more element than slots: piece, slot, piece, slot ... piece.
	pieces []string
	slots  []slot[T]
}

// append renders v.
func (t *template[T]) append(dst []byte, v *T) []byte {
	for i, s := range t.slots {
		dst = append(dst, t.pieces[i]...)
		dst = s(dst, v)
	}
	return append(dst, t.pieces[len(t.slots)]...)
}

// mustCompile reads bodies/folder/name.json. The templates are part of the program, so that an error in one is a panic at the first use of the package.
func mustCompile[T any](folder, name string, resolve func(name string) slot[T]) *template[T] {
	src, err := expand(folder, name, "")
	if err == nil {
		var t *template[T]
		if t, err = compile(src, resolve); err == nil {
			return t
		}
	}
	panic(fmt.Sprintf("provider: compile bodies/%s/%s.json: %v", folder, name, err))
}

var (
	includePattern = regexp.MustCompile(`"@([a-z_]+)(?: ([a-z_.]+))?"(:0)?`)
	slotPattern    = regexp.MustCompile(`"#\{([a-z0-9_.]+)\}"|\$\{([a-z0-9_.]+)\}`)
)

// expand reads a template file, compacts it and replaces its includes. Nesting ends with the files, which never include themselves.
func expand(folder, name, arg string) (string, error) {
	raw, err := bodies.ReadFile("bodies/" + folder + "/" + name + ".json")
	if err != nil {
		return "", err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return "", fmt.Errorf("parse %s.json: %w", name, err)
	}
	src := compact.String()
	if arg != "" {
		src = strings.NewReplacer("{.}", "{"+arg+"}", "{.", "{"+arg+".").Replace(src)
	}
	var failed error
	src = includePattern.ReplaceAllStringFunc(src, func(m string) string {
		part := includePattern.FindStringSubmatch(m)
		inner, err := expand(folder, part[1], nested(arg, part[2]))
		if err != nil {
			failed = err
		}
		if part[3] != "" {
			inner = strings.TrimSuffix(strings.TrimPrefix(inner, "{"), "}")
		}
		return inner
	})
	return src, failed
}

// nested is the argument of an include inside a template that has the argument outer itself: ".owner" inside of "repo" is "repo.owner".
func nested(outer, arg string) string {
	if !strings.HasPrefix(arg, ".") {
		return arg
	}
	return strings.Trim(outer+arg, ".")
}

// compile splits an expanded template.
func compile[T any](src string, resolve func(name string) slot[T]) (*template[T], error) {
	t := &template[T]{}
	at := 0
	for _, m := range slotPattern.FindAllStringSubmatchIndex(src, -1) {
		from, to := m[2], m[3]
		if from < 0 {
			from, to = m[4], m[5]
		}
		s := resolve(src[from:to])
		if s == nil {
			return nil, fmt.Errorf("unknown slot %q", src[from:to])
		}
		t.pieces = append(t.pieces, src[at:m[0]])
		t.slots = append(t.slots, s)
		at = m[1]
	}
	t.pieces = append(t.pieces, src[at:])
	for _, p := range t.pieces {
		if strings.Contains(p, "#{") || strings.Contains(p, "${") || strings.Contains(p, `"@`) {
			return nil, fmt.Errorf("misspelt slot or include in %q", p)
		}
	}
	return t, nil
}

// pool keeps the scratch values of renders that are over. Its zero value is ready; it is safe for concurrent use.
type pool[T any] struct{ spare sync.Pool }

func (p *pool[T]) get() *T {
	if v, ok := p.spare.Get().(*T); ok {
		return v
	}
	return new(T)
}

func (p *pool[T]) put(v *T) { p.spare.Put(v) }

// arena is scratch memory for the texts that one render uses in many places.
type arena []byte

// since returns what was appended after the arena had length start.
func (a arena) since(start int) []byte { return a[start:len(a):len(a)] }
