package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"floodproof/reference"
)

// serveFormat is the version of the file's form.
const serveFormat = "1"

// maxServeFile bounds a file that was given by mistake.
const maxServeFile = 1 << 20

// serveFile reads one file and collects everything that is wrong with it.
//
// Note: yaml's own strict decoding into structs stops a mapping at its first mistake and does not say where a wrong value stands; the nodes do.
type serveFile struct {
	// name is the file's; where there is none but the text of a flag or variable, from is the name of that.
	name, from string
	faults     []error
}

// readFile reads a YAML file into the configuration.
func (c *serveConfig) readFile(name string, settings []serveSetting) []error {
	f := &serveFile{name: filepath.Base(name)}
	root, err := f.parse(name)
	if err != nil {
		return []error{err}
	}
	c.providers = map[string]serveProvider{}
	keys := map[string]func(*yaml.Node){
		"format": func(n *yaml.Node) {
			if n.Value != serveFormat {
				f.fail(n, "format is %q: this program reads %s", n.Value, serveFormat)
			}
		},
		"hosts":     func(n *yaml.Node) { f.list(n, func(item *yaml.Node) { c.hosts = append(c.hosts, f.word(item)) }) },
		"providers": func(n *yaml.Node) { f.providers(n, c.providers) },
		"debounce":  func(n *yaml.Node) { c.readDebounce(f, n) },
		"lanes":     func(n *yaml.Node) { c.readLanes(f, n) },
	}
	for _, s := range settings {
		if keys[s.key()] == nil { // a list, where the file has one
			keys[s.key()] = func(n *yaml.Node) {
				c.origins[s.name] = f.where(n)
				f.set(n, s.set)
			}
		}
	}
	seen := f.mapping(root, keys)
	if !seen["format"] {
		f.fail(root, "there is no format: begin the file with format: %s", serveFormat)
	}
	return f.faults
}

// readLanes and readDebounce read a list, in place of one that was read before.
func (c *serveConfig) readLanes(f *serveFile, n *yaml.Node) {
	c.lanes = nil
	f.list(n, func(item *yaml.Node) { c.lanes = append(c.lanes, f.lane(item)) })
}

func (c *serveConfig) readDebounce(f *serveFile, n *yaml.Node) {
	c.debounce = nil
	f.list(n, func(item *yaml.Node) {
		before := len(f.faults)
		if rule := f.debounce(item); len(f.faults) == before {
			if err := rule.Check(); err != nil {
				f.fail(item, "%v", err)
				return
			}
			c.debounce = append(c.debounce, rule)
		}
	})
}

// setList reads a list that stands in a flag or a variable, written as in the file.
func (c *serveConfig) setList(name, s string, read func(*serveFile, *yaml.Node)) error {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(s), &root); err != nil {
		return fmt.Errorf("write a list as in the file: not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	f := &serveFile{from: c.from(name)}
	if len(root.Content) == 0 {
		root.Content = []*yaml.Node{{Kind: yaml.SequenceNode}}
	}
	read(f, root.Content[0])
	return errors.Join(f.faults...)
}

// parse is the one document of a file.
func (f *serveFile) parse(name string) (*yaml.Node, error) {
	text, err := os.ReadFile(filepath.Clean(name))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read configuration: %w", err)
	case len(text) > maxServeFile:
		return nil, fmt.Errorf("%s has %d bytes: give a configuration, not data", f.name, len(text))
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var first, second yaml.Node
	if err := dec.Decode(&first); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s:1: the file is empty: begin it with format: %s", f.name, serveFormat)
	} else if err != nil {
		return nil, fmt.Errorf("%s: not valid YAML: %s", f.name, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if !errors.Is(dec.Decode(&second), io.EOF) {
		return nil, fmt.Errorf("%s: a second document begins here, or what follows is not valid YAML: keep one", f.name)
	}
	return first.Content[0], nil
}

func (f *serveFile) fail(n *yaml.Node, format string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf("%s: %s", f.where(n), fmt.Sprintf(format, args...)))
}

// where is a place in the file, or in the text of a flag.
func (f *serveFile) where(n *yaml.Node) string {
	if f.name == "" {
		return fmt.Sprintf("line %d", max(1, n.Line))
	}
	return fmt.Sprintf("%s:%d", f.name, max(1, n.Line))
}

// mapping reads the keys that a mapping may have, and says which it had.
func (f *serveFile) mapping(n *yaml.Node, keys map[string]func(*yaml.Node)) (seen map[string]bool) {
	seen = map[string]bool{}
	if n.Kind != yaml.MappingNode {
		f.fail(n, "write a mapping with the keys %s", known(keys))
		return seen
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		read, ok := keys[key.Value]
		switch {
		case key.Value == "secret" || key.Value == "secrets" || key.Value == "password":
			f.fail(key, "%s does not stand in the file: it comes from a variable, or from a file of its own (%s_file)", key.Value, strings.TrimSuffix(key.Value, "s"))
		case !ok:
			f.fail(key, "unknown key %q: use %s", key.Value, known(keys))
		case seen[key.Value]:
			f.fail(key, "key %q is there twice", key.Value)
		default:
			seen[key.Value] = true
			read(value)
		}
	}
	return seen
}

func known(keys map[string]func(*yaml.Node)) string {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// list calls each for every item.
func (f *serveFile) list(n *yaml.Node, each func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		f.fail(n, "write a list")
		return
	}
	for _, item := range n.Content {
		each(item)
	}
}

// word is a plain value. Aliases and tags are refused: a value stands where it is used.
func (f *serveFile) word(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Style&yaml.TaggedStyle != 0 || n.Value == "" {
		f.fail(n, "write a value")
		return ""
	}
	return n.Value
}

func (f *serveFile) set(n *yaml.Node, set func(string) error) {
	if text := f.word(n); text != "" {
		if err := set(text); err != nil {
			f.fail(n, "%v", err)
		}
	}
}

func (f *serveFile) providers(n *yaml.Node, into map[string]serveProvider) {
	keys := map[string]func(*yaml.Node){}
	for _, name := range reference.Providers() {
		keys[name] = func(n *yaml.Node) {
			var p serveProvider
			f.mapping(n, map[string]func(*yaml.Node){
				"secret_file": func(n *yaml.Node) { p.secretFile = f.word(n) },
				"max_body": func(n *yaml.Node) {
					size, err := strconv.ParseInt(f.word(n), 10, 32)
					if err != nil || size < 1 {
						f.fail(n, "max_body is %q: write a number of bytes", n.Value)
					}
					p.maxBody = size
				},
			})
			into[name] = p
		}
	}
	f.mapping(n, keys)
}
