package tape

import "encoding/json"

// node is one value or one member's name of a JSON text. A tree is a slice of them in the order of the text, so that what is below a node follows it.
type node struct {
	// kind is the value's first byte, with '0' for all numbers, and 'k' for a member's name.
	kind byte
	// start and end are where it stands, quotes and brackets included.
	start, end int32
	// next is the index of the node behind this one and everything below it.
	next int32
}

// parse returns the nodes of a JSON text, or false if it is not valid.
//
// Note: decoding and encoding it again, as encoding/json would, loses what a signature and a stranger's parser care about: white space, the order of
// members, 1.0 and 1e2, escapes, and members that are there twice.
func parse(src []byte) ([]node, bool) {
	if !json.Valid(src) {
		return nil, false
	}
	p := parser{src: src, nodes: make([]node, 0, 16+len(src)/16)}
	p.value()
	return p.nodes, true
}

// parser walks over valid JSON, so that nothing that it looks for is missing. How deeply it nests is bounded by json.Valid.
type parser struct {
	src   []byte
	at    int
	nodes []node
}

// peek skips white space.
func (p *parser) peek() byte {
	for {
		switch c := p.src[p.at]; c {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return c
		}
	}
}

func (p *parser) value() {
	switch c := p.peek(); c {
	case '{':
		p.list('{', '}', func() {
			p.peek()
			p.text('k')
			p.peek()
			p.at++ // the colon
			p.value()
		})
	case '[':
		p.list('[', ']', p.value)
	case '"':
		p.text('"')
	case 't', 'f', 'n':
		p.scalar(c)
	default:
		p.scalar('0')
	}
}

// list reads what stands between two brackets.
func (p *parser) list(open, end byte, item func()) {
	i := p.begin(open)
	for p.at++; p.peek() != end; {
		item()
		if p.peek() == ',' {
			p.at++
		}
	}
	p.at++
	p.end(i)
}

func (p *parser) text(kind byte) {
	i := p.begin(kind)
	for p.at++; p.src[p.at] != '"'; p.at++ {
		if p.src[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	p.end(i)
}

func (p *parser) scalar(kind byte) {
	i := p.begin(kind)
	for p.at < len(p.src) && (isAlnum(p.src[p.at]) || p.src[p.at] == '-' || p.src[p.at] == '+' || p.src[p.at] == '.') {
		p.at++
	}
	p.end(i)
}

func (p *parser) begin(kind byte) int {
	p.nodes = append(p.nodes, node{kind: kind, start: int32(p.at)})
	return len(p.nodes) - 1
}

func (p *parser) end(i int) {
	p.nodes[i].end, p.nodes[i].next = int32(p.at), int32(len(p.nodes))
}

// inner is the text between the quotes of a string or a name.
func (n node) inner(src []byte) []byte { return src[n.start+1 : n.end-1] }
