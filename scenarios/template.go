package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// piecePattern is what a template replaces: a name in braces, and for padding how long it is. In JSON no letter follows an opening brace, so that a
// body needs no escapes.
var piecePattern = regexp.MustCompile(`\{([A-Za-z][^{}"]*)\}`)

// padPiece is padding of a number of bytes.
var padPiece = regexp.MustCompile(`^pad:([1-9][0-9]{0,6})$`)

// The pieces that each template knows. {timestamp} is the signature's clock in seconds, {timestamp_ms} in milliseconds, {time} when the event happened;
// {path} is the path of the receiver's URL with its query; {signatures} has one for each active secret; {pad:1500} is text of 1500 bytes.
func overPieces() []string {
	return []string{"body", "id", "method", "path", "timestamp", "timestamp_ms", "url"}
}
func valuePieces() []string { return []string{"signature", "signatures", "timestamp", "timestamp_ms"} }
func headerPieces() []string {
	return []string{"attempt", "id", "resource", "time", "timestamp", "timestamp_ms", "type", "version"}
}
func bodyPieces() []string {
	return []string{"attempt", "id", "pad:N", "resource", "time", "type", "version"}
}

// template reads text with pieces. braces: others than those of pieces may stand in it, as in JSON.
func (d *decoder) template(dst *string, known []string, braces bool) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if !isText(n) {
			d.fail(n, d.is(n), "write text, with {"+known[0]+"} and the like where something is put in")
			return
		}
		if d.checkPieces(n, n.Value, known, braces) {
			*dst = strings.TrimSpace(n.Value)
		}
	}
}

// checkPieces reports what no template of that kind can hold.
func (d *decoder) checkPieces(n *yaml.Node, text string, known []string, braces bool) bool {
	for _, name := range pieces(text) {
		if !isPiece(name, known) {
			d.fail(n, fmt.Sprintf("%s has the unknown piece {%s}", d.names[n], name), didYouMean(name, "pieces", known))
			return false
		}
	}
	if rest := piecePattern.ReplaceAllString(text, ""); !braces && strings.ContainsAny(rest, "{}") {
		d.fail(n, d.names[n]+" has a brace that belongs to no piece", "known pieces: "+strings.Join(known, ", "))
		return false
	}
	return true
}

// isPiece reports whether a template that knows these pieces knows this one.
func isPiece(name string, known []string) bool {
	if strings.HasPrefix(name, "pad:") {
		return padPiece.MatchString(name) && slices.Contains(known, "pad:N")
	}
	return slices.Contains(known, name)
}

// pieces are the names in braces, in order.
func pieces(text string) []string {
	var names []string
	for _, m := range piecePattern.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	return names
}

// stampOf is the time stamp among the pieces of a template, empty without one.
func stampOf(text string) string {
	for _, name := range pieces(text) {
		if strings.HasPrefix(name, "timestamp") {
			return name
		}
	}
	return ""
}
