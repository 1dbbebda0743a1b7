package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder reads one file and collects everything that is wrong with it.
//
// Note: yaml's own strict decoding into structs was tried. It stops a mapping at its first type error, does not say where a
// wrong unit stands, and knows nothing of relations; all of that needs the nodes, so that everything reads nodes.
type decoder struct {
	file string
	// dir is where files beside the scenario are looked for, empty for a shipped one.
	dir        string
	vocabulary Vocabulary
	// custom are the names of the scenario's own providers, with their event types as far as they could be read.
	custom map[string][]string
	errs   Errors
	// names are what messages call a node ("load.burst.at"), known when its parent was read.
	names map[*yaml.Node]string
	// bad marks nodes that an error was reported for, so that no relation with them is checked.
	bad map[*yaml.Node]bool
}

// fail reports a problem with a node, once per node.
func (d *decoder) fail(n *yaml.Node, problem, remedy string) {
	if d.bad[n] {
		return
	}
	d.bad[n] = true
	d.errs = append(d.errs, Error{File: d.file, Line: max(n.Line, 1), Problem: problem, Remedy: remedy})
}

// failAt reports a problem that belongs to a line and not to a node.
func (d *decoder) failAt(line int, problem, remedy string) {
	d.fail(&yaml.Node{Line: line}, problem, remedy)
}

// parse turns the text into the root mapping. It returns nil, with errors reported, if that is impossible.
func (d *decoder) parse(text []byte) *yaml.Node {
	begin := fmt.Sprintf("begin it with %q and %q", fmt.Sprintf("format: %d", Format), "why: ...")
	if len(text) > maxSize {
		d.failAt(1, fmt.Sprintf("the file has more than %d bytes", maxSize), "give a scenario file, not data")
		return nil
	}
	documents, err := documents(text)
	switch {
	case err != nil:
		d.syntax(text, err)
		return nil
	case len(documents) == 0:
		d.failAt(1, "the file is empty", begin)
		return nil
	case len(documents) > 1:
		d.failAt(documents[1].Line, "a second document begins here", "write one scenario per file")
	}
	root := documents[0].Content[0]
	if root.Kind != yaml.MappingNode {
		d.fail(root, "the file is "+describe(root)+", not a mapping", begin)
		return nil
	}
	d.refuse(root)
	return root
}

// documents are the YAML documents of a text.
func documents(text []byte) ([]*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var all []*yaml.Node
	for {
		n := new(yaml.Node)
		switch err := dec.Decode(n); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, n)
	}
}

// syntax reports what the YAML parser said, which has the form "yaml: line 3: did not find ...".
func (d *decoder) syntax(text []byte, err error) {
	problem, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		if number, message, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				problem, line = message, n
			}
		}
	}
	if n, ok := firstBadLine(text); ok {
		line = n
	}
	d.failAt(line, "not valid YAML: "+problem, "check indentation, quotes and brackets of this line")
}

// firstBadLine is the line after the longest part of the text that is valid YAML. The parser itself names the line, often one too low, where the
// mapping begins that it could not finish, which for most mistakes is the top of the file. Long files are not searched.
func firstBadLine(text []byte) (line int, ok bool) {
	const longest = 500
	lines := bytes.SplitAfter(text, []byte("\n"))
	if len(lines) > longest || len(text) > longest*100 {
		return 0, false
	}
	end := len(text)
	for i := len(lines) - 1; i >= 0; i-- {
		end -= len(lines[i])
		if _, err := documents(text[:end]); err == nil {
			return i + 1, true
		}
	}
	return 0, false
}

// refuse reports everything that YAML can do and a scenario must not: a file is read by people, from top to bottom,
// and its numbers stand where they are used.
func (d *decoder) refuse(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		d.fail(n, fmt.Sprintf("alias *%s is not read", n.Value), "write the value out")
		return // An alias may lead back to a node that contains it.
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n, fmt.Sprintf("tag %s is not read", n.Tag), "write the value without it")
	case n.Anchor != "":
		d.errs = append(d.errs, Error{d.file, n.Line, fmt.Sprintf("anchor &%s is not read", n.Anchor), "remove it and write the value where it is used"})
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!merge":
		d.fail(n, "merge key << is not read", "write the keys out")
	}
	for _, c := range n.Content {
		d.refuse(c)
	}
}

// field is one key that a mapping may have.
type field struct {
	key      string
	required bool
	// read takes the value; it reports what is wrong and leaves the default in place then.
	read func(*yaml.Node)
}

// section is a mapping whose fields were read.
type section struct {
	d      *decoder
	node   *yaml.Node
	values map[string]*yaml.Node
}

// has reports whether the key was written.
func (s section) has(key string) bool { return s.values[key] != nil }

// at is the node to blame for a relation: the key's value, or the mapping where the default holds.
func (s section) at(key string) *yaml.Node {
	if n := s.values[key]; n != nil {
		return n
	}
	return s.node
}

// good reports that the values of all these keys can be relied on, so that relations between them are worth checking.
func (s section) good(keys ...string) bool {
	for _, k := range keys {
		if n := s.values[k]; n != nil && s.d.bad[n] {
			return false
		}
	}
	return true
}

// mapping reads the fields of a mapping in the order of the list, whatever their order in the file.
func (d *decoder) mapping(n *yaml.Node, fields []field) section {
	s := section{d, n, map[string]*yaml.Node{}}
	if d.bad[n] {
		return s
	}
	if n.Kind != yaml.MappingNode {
		d.fail(n, d.is(n), "write a mapping with the keys "+strings.Join(keysOf(fields), ", "))
		return s
	}
	for key, value := range pairs(n) {
		d.collect(s, key, value, fields)
	}
	for _, f := range fields {
		value, ok := s.values[f.key]
		switch {
		case ok && !d.bad[value]:
			f.read(value)
		case !ok && f.required:
			// Reported beside the node, which may be fine otherwise.
			d.failAt(n.Line, fmt.Sprintf("key %q is missing%s", f.key, d.in(n)), "add it")
		}
	}
	return s
}

// collect files one pair of a mapping under its key, if the key is known and new.
func (d *decoder) collect(s section, key, value *yaml.Node, fields []field) {
	if d.bad[key] { // Already reported: a merge key, an unknown provider.
		return
	}
	if key.Kind != yaml.ScalarNode {
		d.fail(key, "a key is "+describe(key), "write a word as the key")
		return
	}
	known := keysOf(fields)
	if !slices.Contains(known, key.Value) {
		d.fail(key, fmt.Sprintf("unknown key %q%s", key.Value, d.in(s.node)), didYouMean(key.Value, "keys", known))
		return
	}
	if first := s.values[key.Value]; first != nil {
		d.fail(key, fmt.Sprintf("key %q is there twice%s", key.Value, d.in(s.node)), fmt.Sprintf("keep this one or that of line %d", first.Line))
		return
	}
	s.values[key.Value] = value
	d.names[value] = d.child(s.node, key.Value)
}

// list calls each for every item of a list.
func (d *decoder) list(n *yaml.Node, each func(item *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, d.is(n), "write a list")
		return
	}
	for i, item := range n.Content {
		d.names[item] = fmt.Sprintf("%s[%d]", d.names[n], i)
		if !d.bad[item] {
			each(item)
		}
	}
}

// is says what a node is instead of what it should be: `load.burst is a list`.
func (d *decoder) is(n *yaml.Node) string {
	return d.names[n] + " is " + describe(n)
}

// in says where a key stands: ` in load.burst`, nothing at the top.
func (d *decoder) in(n *yaml.Node) string {
	if d.names[n] == "" {
		return ""
	}
	return " in " + d.names[n]
}

func (d *decoder) child(n *yaml.Node, key string) string {
	if d.names[n] == "" {
		return key
	}
	return d.names[n] + "." + key
}

// describe says what was written, for messages.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		return "an empty mapping"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	case n.ShortTag() == "!!null":
		return "empty"
	case len(n.Value) > 60:
		return fmt.Sprintf("%q...", n.Value[:60])
	default:
		return strconv.Quote(n.Value)
	}
}

// pairs ranges over keys and values of a mapping.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}
