package harness

import (
	"strings"

	"floodproof/scenarios"
)

// pattern says which events are meant: a provider and a type, "" any; in a type * stands for anything.
type pattern struct{ provider, eventType string }

// parsePattern reads "shopify/orders/*", as scenarios write it.
func parsePattern(text string) pattern {
	p := pattern{}
	p.provider, p.eventType, _ = strings.Cut(text, "/")
	if p.provider == "*" {
		p.provider = ""
	}
	return p
}

// fits reports whether events of a kind are meant.
func (p pattern) fits(k kind) bool {
	return (p.provider == "" || p.provider == k.provider) && (p.eventType == "" || glob(strings.Split(p.eventType, "*"), k.eventType))
}

// glob reports whether a text consists of the parts, in order, with anything between them: the pattern that was split at its stars.
//
// Note: the pipeline's own matching (reference.LaneRule) is not asked. In which lane an event belongs is part of the truth that the pipeline is judged by.
func glob(parts []string, text string) bool {
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return text == first
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// kind is what events have in common that rules tell apart.
type kind struct{ provider, eventType string }

// kinds numbers the kinds of events that were sent, and knows what rules say of each. It is not safe for concurrent use.
type kinds struct {
	lanes   []scenarios.Lane
	numbers map[kind]uint16
	list    []knownKind
	// asked are the answers to a pattern for the kinds so far, by number.
	asked map[string][]bool
}

type knownKind struct {
	kind
	lane uint8
}

// newKinds begins with kind 0, of which nothing is known: an event whose provider does not name its types.
func newKinds(lanes []scenarios.Lane) *kinds {
	return &kinds{lanes: lanes, numbers: map[kind]uint16{}, list: make([]knownKind, 1), asked: map[string][]bool{}}
}

// number gives a kind its number. A scenario's own providers may name any number of types; what does not fit 16 bits is of kind 0.
func (k *kinds) number(of kind) uint16 {
	n, known := k.numbers[of]
	if !known && len(k.list) <= 1<<16-1 {
		n = uint16(len(k.list))
		k.numbers[of] = n
		k.list = append(k.list, knownKind{of, k.laneOf(of)})
	}
	return n
}

// laneOf is the lane in which the scenario wants a kind, as an index into laneNames.
func (k *kinds) laneOf(of kind) uint8 {
	for _, l := range k.lanes {
		if (pattern{l.Provider, l.Type}).fits(of) {
			for i, name := range laneNames(k.lanes) {
				if name == l.Name {
					return uint8(i)
				}
			}
		}
	}
	return 0
}

// lane is the lane of a numbered kind.
func (k *kinds) lane(n uint16) uint8 { return k.list[n].lane }

// fits reports whether a numbered kind is meant by a pattern of a scenario.
func (k *kinds) fits(n uint16, text string) bool {
	answers := k.asked[text]
	for len(answers) < len(k.list) {
		answers = append(answers, parsePattern(text).fits(k.list[len(answers)].kind))
	}
	k.asked[text] = answers
	return answers[n]
}

// laneNames are the lanes of a scenario by number; the first is the default one. None if there is no other.
func laneNames(lanes []scenarios.Lane) (names []string) {
	known := map[string]bool{}
	for _, l := range lanes {
		if !known[l.Name] {
			known[l.Name] = true
			names = append(names, l.Name)
		}
	}
	if names == nil {
		return nil
	}
	return append([]string{""}, names...)
}
