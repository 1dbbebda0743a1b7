package tape

import "bytes"

// document is one JSON text that is being scrubbed in place.
type document struct {
	*Scrubber
	src   []byte
	nodes []node
	depth int
	known known
	// keys remembers what names say: most of a body's come again.
	keys map[string]meaning
	// rest are the values that no name gave away. They come second, when all known values are known.
	rest []leaf
}

// meaning is what a member's name says about its value.
type meaning struct {
	class class
	role  role
}

// json scrubs a parsed text.
func (s *Scrubber) json(src []byte, nodes []node, depth int) {
	d := document{Scrubber: s, src: src, nodes: nodes, depth: depth, keys: map[string]meaning{}}
	d.visit(0, plain, role{})
	for _, l := range d.rest {
		s.value(l, &d.known)
	}
}

// visit takes in the value at node i. c is what its name says about it, r what it says about it if it is an object; the items of an array have the array's name.
func (d *document) visit(i int32, c class, r role) {
	n := d.nodes[i]
	switch n.kind {
	case '{':
		d.object(i, c, r)
	case '[':
		for j := i + 1; j < n.next; j = d.nodes[j].next {
			d.visit(j, c, r)
		}
	case '"':
		d.rest = d.first(leaf{text: jsonText(n.inner(d.src)), class: c, depth: d.depth}, &d.known, d.rest)
	case '0':
		d.number(d.src[n.start:n.end], c)
	}
}

// object takes in the members of an object.
func (d *document) object(i int32, c class, r role) {
	end := d.nodes[i].next
	for j := i + 1; j < end; j = d.nodes[j+1].next {
		if d.speaks(j + 1) {
			r = r.with(d.meaning(d.name(j)).class)
		}
	}
	about, label := d.label(i)
	for j := i + 1; j < end; j = d.nodes[j+1].next {
		key := jsonText(d.nodes[j].inner(d.src))
		d.rest = append(d.rest, leaf{text: key, class: fixed, depth: maxNested})
		said := d.meaning(key.plain)
		m := r.resolve(said.in(string(key.plain), c, about))
		if j == label {
			m = fixed
		}
		d.visit(j+1, m, said.role)
	}
}

// name is the text of node j, a name or a string.
func (d *document) name(j int32) []byte { return jsonText(d.nodes[j].inner(d.src)).plain }

// speaks reports whether a value, with its name, says what the object around it is: an object or an array speaks for itself only, and the full_name of a
// project is owner/repository.
func (d *document) speaks(i int32) bool {
	n := d.nodes[i]
	switch n.kind {
	case '{', '[':
		return false
	case '"':
		return bytes.IndexByte(n.inner(d.src), '/') < 0
	default:
		return true
	}
}

// meaning classifies a name.
func (d *document) meaning(key []byte) meaning {
	m, ok := d.keys[string(key)]
	if !ok {
		m = meaning{classify(string(key)), roleOf(string(key))}
		d.keys[string(key)] = m
	}
	return m
}

// in is the class of a member in an object whose own name says parent. about is what the object says that its value is, if it is a pair of a label and a
// value.
func (m meaning) in(key string, parent, about class) class {
	switch {
	case about != plain && isValueKey(key):
		return about
	case parent == name || parent == maybeName:
		switch key {
		case "first", "last", "middle", "given", "family", "full":
			return name // {"name": {"first": ...}}
		}
	}
	return m.class
}

// isValueKey reports the names that the value has in a pair of a label and a value.
func isValueKey(key string) bool {
	switch key {
	case "value", "propertyValue", "answer", "newValue", "previousValue", "val":
		return true
	}
	return false
}

// label finds out what an object is about that names its value in another member, {"name": "phone", "value": "..."}, and which member that is.
func (d *document) label(i int32) (about class, at int32) {
	for j := i + 1; j < d.nodes[i].next; j = d.nodes[j+1].next {
		if d.nodes[j+1].kind != '"' {
			continue
		}
		switch string(d.nodes[j].inner(d.src)) {
		case "propertyName", "property", "name", "key", "field", "label", "question", "attribute":
			c := d.meaning(d.name(j + 1)).class
			if c != plain && c != fixed && c != ident && d.hasValue(i) {
				return c, j
			}
		}
	}
	return plain, -1
}

// hasValue reports whether the object has a member that a label can be about.
func (d *document) hasValue(i int32) bool {
	for j := i + 1; j < d.nodes[i].next; j = d.nodes[j+1].next {
		if isValueKey(string(d.name(j))) {
			return true
		}
	}
	return false
}

// number replaces the digits of a number whose name gives it away, or that is a card's.
func (d *document) number(digits []byte, c class) {
	switch c {
	case phone:
		if len(onlyDigits(digits)) >= 5 {
			d.fake.number(c, digits)
		}
	case shaped, address, place, birth:
		d.fake.number(c, digits)
	case ident:
	default:
		if isCard(digits) && bytes.IndexByte(digits, '.') < 0 {
			d.fake.number(c, digits)
		}
	}
}

// first replaces a value that its name gives away and remembers it, or leaves it to the second round.
func (s *Scrubber) first(l leaf, values *known, rest []leaf) []leaf {
	if !whole(l.class, l.text.plain) {
		return append(rest, l)
	}
	old := bytes.Clone(l.text.plain)
	changed := bytes.Clone(old)
	s.fake.replace(l.class, changed)
	l.text.write(changed)
	switch l.class {
	case name:
		values.addName(old, changed)
	case shaped, address:
		values.add(old, changed)
	default: // Patterns find the others again.
	}
	return rest
}

// with is the role of an object that has a member of that class too: what has a mail address or a first name is a person, and what has a street a place.
func (r role) with(c class) role {
	switch c {
	case email, phone, name:
		r.person = true
	case address:
		r.place = true
	default:
	}
	return r
}

// resolve decides what depends on the surroundings.
func (r role) resolve(c class) class {
	switch {
	case c == maybeName && (r.person || r.place):
		return name
	case c == maybePlace && r.place:
		return address
	case c == maybeName || c == maybePlace:
		return plain
	default:
		return c
	}
}
