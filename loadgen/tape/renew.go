package tape

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"floodproof/loadgen/provider"
)

// Renewal gives events new ids, so that a target that remembers the old ones takes them as new. Every character of an id moves on in its own alphabet, by a
// number that the seed draws for its position: equal ids stay equal, different ones different, no id stays what it is, and length and form do not change.
// It may be used by many goroutines at once.
type Renewal struct{ seed uint64 }

// NewRenewal returns the renewal of a seed. The same seed makes the same ids of the same ids.
func NewRenewal(seed uint64) *Renewal { return &Renewal{seed: seed} }

// headerID and pointerID are the forms of Provider.CanonicalID that can be followed.
var (
	headerID  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)+$`)
	pointerID = regexp.MustCompile(`^(?:/[^/:]+)+$`)
)

// idPlaces are where a provider's ids are, besides the canonical one where receivers are told to look at others too.
type idPlaces struct{ headers, pointers []string }

// placesOf finds out where the ids of a provider are, or says why nobody can tell.
func placesOf(name string) (idPlaces, error) {
	p, ok := provider.Find(name)
	switch {
	case !ok:
		return idPlaces{}, fmt.Errorf("new ids: it is not known where the ids of %q are; record with --provider, or replay without new ids", name)
	case name == "hubspot":
		// The id is made of several members; the object is what can be another. Receivers are told to look at eventId too.
		return idPlaces{pointers: []string{"/N/objectId", "/N/eventId"}}, nil
	case name == "shopify":
		// The id of the delivery as well: https://shopify.dev/docs/apps/build/webhooks/ignore-duplicates (November 2026) names it first.
		return idPlaces{headers: []string{p.CanonicalID, "X-Shopify-Webhook-Id"}}, nil
	case headerID.MatchString(p.CanonicalID):
		return idPlaces{headers: []string{p.CanonicalID}}, nil
	case pointerID.MatchString(p.CanonicalID):
		return idPlaces{pointers: []string{p.CanonicalID}}, nil
	default:
		return idPlaces{}, fmt.Errorf("new ids: those of %s (%s) cannot be replaced; replay without new ids", name, p.CanonicalID)
	}
}

// Apply renews the ids of a request in place. Its error says why it cannot, and then the request must not be sent.
func (n *Renewal) Apply(r *Request) error {
	places, err := placesOf(r.Provider)
	if err != nil {
		return err
	}
	for i, name := range places.headers {
		if !n.header(r, name) && i == 0 {
			return fmt.Errorf("new ids: a request of %s without the header %s", r.Provider, name)
		}
	}
	if len(places.pointers) == 0 {
		return nil
	}
	body := bytes.Clone(r.Body.Bytes)
	nodes, ok := parse(body)
	if !ok {
		return nil // Malformed: whoever receives it finds no id in it either.
	}
	for i, pointer := range places.pointers {
		if n.body(body, nodes, strings.Split(pointer, "/")[1:]) == 0 && i == 0 {
			return fmt.Errorf("new ids: a request of %s without an id at %s", r.Provider, pointer)
		}
	}
	r.Body.Bytes = body
	return nil
}

// header renews the value of a header.
func (n *Renewal) header(r *Request, name string) bool {
	i := slices.IndexFunc(r.Headers, func(f Field) bool { return strings.EqualFold(f.Name, name) })
	if i < 0 {
		return false
	}
	value := []byte(r.Headers[i].Value)
	if !n.renew(value) {
		return false
	}
	r.Headers = slices.Clone(r.Headers)
	r.Headers[i].Value = string(value)
	return true
}

// body renews every id that a pointer finds (RFC 6901, with N for all items of an array), and returns how many these were.
func (n *Renewal) body(src []byte, nodes []node, path []string) int {
	found := 0
	var walk func(i int32, path []string)
	walk = func(i int32, path []string) {
		at := nodes[i]
		switch {
		case len(path) == 0:
			if n.value(src, at) {
				found++
			}
		case at.kind == '[' && path[0] == "N":
			for j := i + 1; j < at.next; j = nodes[j].next {
				walk(j, path[1:])
			}
		case at.kind == '{':
			for j := i + 1; j < at.next; j = nodes[j+1].next {
				if string(jsonText(nodes[j].inner(src)).plain) == path[0] {
					walk(j+1, path[1:])
				}
			}
		}
	}
	walk(0, path)
	return found
}

// value renews one JSON value, a string without escapes or a whole number.
func (n *Renewal) value(src []byte, at node) bool {
	switch at.kind {
	case '"':
		inner := at.inner(src)
		return bytes.IndexByte(inner, '\\') < 0 && n.renew(inner)
	case '0':
		digits := src[at.start:at.end]
		return isDigits(string(digits)) && n.renew(digits)
	default:
		return false
	}
}

// renew moves the characters of an id on. What an id begins with up to its last underscore says what kind it is and stays, as the version and the variant of
// a GUID do. An id without a character that can move is left, and false returned.
func (n *Renewal) renew(id []byte) bool {
	r := rand.New(rand.NewPCG(n.seed, uint64(len(id))))
	id = id[bytes.LastIndexByte(id, '_')+1:]
	hex, numeric := isHexText(id), isDigits(string(id))
	guid := hex && len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-'
	moved := false
	for i, c := range id {
		step := r.Uint64()
		if guid && (i == 14 || i == 19) {
			continue
		}
		low, size := alphabet(c, hex)
		if numeric && i == 0 {
			low, size = '1', 9
		}
		if size == 0 || c < low {
			continue
		}
		id[i] = low + byte((uint64(c-low)+1+step%(size-1))%size)
		moved = true
	}
	return moved
}

// alphabet is the run of characters that one belongs to.
func alphabet(c byte, hex bool) (low byte, size uint64) {
	switch {
	case c >= '0' && c <= '9':
		return '0', 10
	case c >= 'a' && c <= 'z':
		low, size = 'a', 26
	case c >= 'A' && c <= 'Z':
		low, size = 'A', 26
	}
	if hex && size == 26 {
		size = 6
	}
	return low, size
}
