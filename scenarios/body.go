package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fits checks that the receiver can find what it is told to look for, and that nothing is there twice.
func (d *decoder) fits(s section, c *CustomProvider) {
	g := &c.Signature
	stamp := stampOf(g.Over)
	for _, h := range c.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case name == http.CanonicalHeaderKey(g.Header):
			s.breaks("headers", fmt.Sprintf("header %s is that of the signature", h.Name), "remove it from headers; signature.value says what is in it")
		case g.Scheme == noSignature && stampOf(h.Value) != "":
			s.breaks("headers", fmt.Sprintf("header %s has {%s}, the signature's clock, and nothing is signed", h.Name, stampOf(h.Value)), "write {time}, or choose a scheme")
		case name == "Content-Type" && !jsonType.MatchString(h.Value):
			s.breaks("headers", fmt.Sprintf("the content type is %q; bodies are JSON", h.Value), "write application/json, or one that ends with +json")
		case stamp != "" && h.Value == "{"+stamp+"}" && stampOf(g.Value) == "" && g.TimestampHeader == "":
			g.TimestampHeader = h.Name
		}
	}
	if stamp != "" && stampOf(g.Value) == "" && g.TimestampHeader == "" {
		s.breaks("signature", fmt.Sprintf("{%s} is signed, but the receiver is not told it", stamp), fmt.Sprintf(`write it into signature.value, or add a header with the value "{%s}"`, stamp))
	}
	if strings.Contains(g.Over, "{id}") && c.ID.Header == "" {
		s.breaks("id", "{id} is signed, but the id stands in the body", "sign {body}, or let the id stand in a header")
	}
	body, ok := d.document(s, c.Body)
	if !ok {
		return
	}
	d.finds(s, "id", c.ID, c.Headers, body, "{id}")
	d.finds(s, "type", c.Type, c.Headers, body, "{type}")
	d.finds(s, "resource", c.Resource, c.Headers, body, "{resource}")
	d.finds(s, "version", c.Version, c.Headers, body, "{version}", "{time}")
}

// The numbers that stand for {version} and {attempt} where a body is checked: in JSON they may stand without quotes.
const versionNumber, attemptNumber = "728104629501", "728104629502"

// document is a body with its pieces filled in so that it can be looked at.
func (d *decoder) document(s section, body string) (any, bool) {
	key := "body"
	if s.has("body_file") {
		key = "body_file"
	}
	size := len(body)
	for _, name := range pieces(body) {
		if m := padPiece.FindStringSubmatch(name); m != nil {
			n, _ := strconv.Atoi(m[1])
			size += n
		}
	}
	if size > maxBody {
		s.breaks(key, fmt.Sprintf("the body has %d bytes", size), fmt.Sprintf("keep it below %d", maxBody))
		return nil, false
	}
	filled := strings.NewReplacer("{version}", versionNumber, "{attempt}", attemptNumber).Replace(body)
	decoder := json.NewDecoder(strings.NewReader(filled))
	decoder.UseNumber()
	var v any
	err := decoder.Decode(&v)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("something follows the first value")
	}
	if err != nil {
		s.breaks(key, fmt.Sprintf("the body is not JSON: %v", err), "quote every piece but {version} and {attempt}")
		return nil, false
	}
	if !strings.ContainsAny(filled[:1], "{[") { // A number that is cut is still a number, and not malformed.
		s.breaks(key, "the body is neither an object nor an array", "put it into one")
		return nil, false
	}
	return v, true
}

// finds checks that a place holds the piece that is looked for there, and nothing else.
func (d *decoder) finds(s section, key string, at Place, headers []Header, body any, wanted ...string) {
	var value string
	var ok bool
	switch {
	case at.Header != "":
		for _, h := range headers {
			if strings.EqualFold(h.Name, at.Header) {
				value, ok = h.Value, true
			}
		}
		if !ok {
			s.breaks(key, fmt.Sprintf("there is no header %s", at.Header), fmt.Sprintf(`add it to headers with the value "%s"`, wanted[0]))
			return
		}
	case at.Pointer != "":
		value, ok = scalarAt(body, at.Pointer)
		value = strings.NewReplacer(versionNumber, "{version}", attemptNumber, "{attempt}").Replace(value)
		if !ok {
			s.breaks(key, fmt.Sprintf("the body has nothing at %s", at.Pointer), fmt.Sprintf("let %s stand there", wanted[0]))
			return
		}
	default:
		return
	}
	if !slices.Contains(wanted, value) {
		s.breaks(key, fmt.Sprintf("%s%s is %q", at.Header, at.Pointer, value), fmt.Sprintf("let it be %s and nothing else", wanted[0]))
	}
}

// isPointer reports a JSON pointer (RFC 6901) other than the empty one.
func isPointer(text string) bool {
	escapes := strings.Count(text, "~0") + strings.Count(text, "~1")
	return len(text) > 1 && text[0] == '/' && escapes == strings.Count(text, "~") && len(text) <= 256
}

// scalarAt finds a text or a number in decoded JSON.
func scalarAt(v any, pointer string) (string, bool) {
	for token := range strings.SplitSeq(pointer[1:], "/") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch inner := v.(type) {
		case map[string]any:
			v = inner[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(inner) || strconv.Itoa(i) != token {
				return "", false
			}
			v = inner[i]
		default:
			return "", false
		}
	}
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	default:
		return "", false
	}
}

// bodyFile reads the template of a body from a file beside the scenario.
func (d *decoder) bodyFile(n *yaml.Node, path *string) string {
	d.text(path)(n)
	switch {
	case d.bad[n]:
		return ""
	case d.dir == "":
		d.fail(n, d.names[n]+" stands in a scenario that is not a file", "write the body itself")
		return ""
	case !filepath.IsLocal(filepath.FromSlash(*path)):
		d.fail(n, d.is(n), "name a file beside the scenario or below, so that both travel together")
		return ""
	}
	text, err := readBeside(d.dir, filepath.FromSlash(*path))
	if err != nil {
		d.fail(n, fmt.Sprintf("%s cannot be read: %v", d.names[n], err), "name a file beside the scenario or below")
		return ""
	}
	if !d.checkPieces(n, text, bodyPieces(), true) {
		return ""
	}
	return strings.TrimSpace(text)
}

// readBeside reads a file in or below a directory, and of a large one a byte more than a body may have.
func readBeside(dir, path string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	f, err := root.Open(path)
	if err != nil {
		return "", errors.Join(err, root.Close())
	}
	text, err := io.ReadAll(io.LimitReader(f, maxBody+1))
	return string(text), errors.Join(err, f.Close(), root.Close())
}
