package tape

import "bytes"

// formPair is one parameter of a form, in place.
type formPair struct{ name, value text }

// splitForm finds the parameters of an application/x-www-form-urlencoded text, or false if an escape in it is none.
func splitForm(form []byte) ([]formPair, bool) {
	var pairs []formPair
	for part := range bytes.SplitSeq(form, []byte("&")) {
		rawName, rawValue, _ := bytes.Cut(part, []byte("="))
		name, ok := formText(rawName)
		value, okValue := formText(rawValue)
		if !ok || !okValue {
			return nil, false
		}
		pairs = append(pairs, formPair{name, value})
	}
	return pairs, true
}

// form scrubs the parameters of a form as if they were the members of one object.
func (s *Scrubber) form(pairs []formPair) {
	classes := make([]class, len(pairs))
	var around role
	for i, p := range pairs {
		classes[i] = classify(string(p.name.plain))
		around = around.with(classes[i])
	}
	values := new(known)
	var rest []leaf
	for i, p := range pairs {
		rest = append(rest, leaf{text: p.name, class: fixed})
		l := leaf{text: p.value, class: around.resolve(classes[i])}
		rest = s.first(l, values, rest)
	}
	for _, l := range rest {
		s.value(l, values)
	}
}
