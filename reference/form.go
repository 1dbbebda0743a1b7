package reference

import (
	"slices"
	"strings"
)

// formField is one parameter of a form, decoded.
type formField struct{ name, value string }

// form is a body of application/x-www-form-urlencoded (https://url.spec.whatwg.org/#urlencoded-parsing), in its order.
type form []formField

// maxFormFields is the most parameters of one form. The longest that Twilio documents has about sixty.
const maxFormFields = 1000

// parseForm decodes a body. It is stricter than browsers and most libraries: a form is signed as it is understood, and two readers that
// understand a body differently are two signatures for one of them to be fooled by. So a raw semicolon (which some split at), a broken escape, a pair that is
// empty and a parameter without a name are no form.
func parseForm(body []byte) (form, bool) {
	if len(body) == 0 {
		return nil, true
	}
	f := make(form, 0, 32)
	for part := range strings.SplitSeq(string(body), "&") {
		name, value, _ := strings.Cut(part, "=")
		plainName, ok := formText(name)
		plainValue, alsoOK := formText(value)
		if !ok || !alsoOK || name == "" || len(f) == maxFormFields {
			return nil, false
		}
		f = append(f, formField{plainName, plainValue})
	}
	return f, true
}

// formText decodes a name or a value.
func formText(text string) (string, bool) {
	if strings.IndexByte(text, ';') >= 0 {
		return "", false
	}
	if !strings.ContainsAny(text, "%+") {
		return text, true
	}
	plain := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '+':
			plain = append(plain, ' ')
		case '%':
			if i+2 >= len(text) || !isHex(text[i+1]) || !isHex(text[i+2]) {
				return "", false
			}
			plain = append(plain, hexValue(text[i+1])<<4|hexValue(text[i+2]))
			i += 2
		default:
			plain = append(plain, c)
		}
	}
	return string(plain), true
}

// hexValue is the value of a hexadecimal digit.
func hexValue(digit byte) byte {
	switch {
	case digit >= 'a':
		return digit - 'a' + 10
	case digit >= 'A':
		return digit - 'A' + 10
	default:
		return digit - '0'
	}
}

// only returns the value of a parameter that is there exactly once, else "": what could be read in two ways is not read.
func (f form) only(name string) (value string) {
	found := false
	for _, field := range f {
		if field.name != name {
			continue
		}
		if found {
			return ""
		}
		value, found = field.value, true
	}
	return value
}

// sorted returns the fields by name and then by value, each different pair once.
func (f form) sorted() form {
	f = slices.Clone(f)
	slices.SortFunc(f, func(a, b formField) int {
		if byName := strings.Compare(a.name, b.name); byName != 0 {
			return byName
		}
		return strings.Compare(a.value, b.value)
	})
	return slices.Compact(f)
}
