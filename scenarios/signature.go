package scenarios

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func (d *decoder) signature(n *yaml.Node, g *Signature) {
	*g = Signature{Over: "{body}", Encoding: "hex", Value: "{signature}", Join: ",", Secret: "utf8"}
	before := len(d.errs)
	s := d.mapping(n, []field{
		{"scheme", true, d.oneOf(&g.Scheme, "schemes", []string{"hmac-sha256", "hmac-sha1", "hmac-sha512", publicKeyScheme, noSignature})},
		{"over", false, func(n *yaml.Node) {
			if d.template(&g.Over, overPieces(), false)(n); !d.bad[n] {
				g.Over = n.Value // Space at its ends is signed too.
			}
		}},
		{"encoding", false, d.oneOf(&g.Encoding, "encodings", []string{"hex", "base64"})},
		{"header", false, d.headerName(&g.Header)},
		{"value", false, d.template(&g.Value, valuePieces(), false)},
		{"join", false, d.joint(&g.Join)},
		{"tolerance", false, d.duration(&g.Tolerance, time.Second)},
		{"secret", false, d.oneOf(&g.Secret, "forms of a secret", []string{"utf8", "base64", "hex"})},
	})
	switch {
	case len(d.errs) > before:
	case g.Scheme == noSignature:
		d.unsigned(s, g)
	default:
		d.signed(s, g)
	}
	if len(d.errs) > before {
		d.bad[n] = true // So that nothing is compared with it.
	}
}

// joint reads what stands between signatures; spaces count.
func (d *decoder) joint(dst *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Value == "" || len(n.Value) > 64 || strings.ContainsAny(n.Value, "{}") || !printable(n.Value) {
			d.fail(n, d.is(n), `write the text between two signatures, such as ",v1="`)
			return
		}
		*dst = n.Value
	}
}

// unsigned checks that nothing is said about a signature that does not exist.
func (d *decoder) unsigned(s section, g *Signature) {
	for _, key := range []string{"over", "encoding", "header", "value", "join", "tolerance", "secret"} {
		if s.has(key) {
			s.breaks(key, fmt.Sprintf("%s.%s means nothing without a signature", d.names[s.node], key), "remove it, or choose a scheme")
		}
	}
	*g = Signature{Scheme: noSignature}
}

// signed checks what the parts of a signature have to do with each other.
func (d *decoder) signed(s section, g *Signature) {
	where := d.names[s.node]
	stamp := stampOf(g.Over)
	if !s.has("header") {
		d.failAt(s.node.Line, fmt.Sprintf("key %q is missing in %s", "header", where), "add it")
	}
	if strings.Contains(g.Over, "{timestamp}") && strings.Contains(g.Over, "{timestamp_ms}") {
		s.breaks("over", where+".over has two time stamps", "sign {timestamp} or {timestamp_ms}")
	}
	d.signatureValue(s, g, stamp)
	if s.has("join") && !strings.Contains(g.Value, "{signatures}") {
		s.breaks("join", where+".join means nothing without {signatures} in value", "remove it, or write {signatures}")
	}
	if stamp == "" && s.has("tolerance") {
		s.breaks("tolerance", where+".tolerance means nothing: no time stamp is signed", "remove it, or write {timestamp} into over")
	}
	if g.Scheme == publicKeyScheme && s.has("secret") && g.Secret == "utf8" {
		s.breaks("secret", "a key of "+publicKeyScheme+" is not text", "write base64 or hex")
	}
	if stamp != "" && g.Tolerance == 0 {
		g.Tolerance = defaultTolerance
	}
	if g.Scheme == publicKeyScheme && !s.has("secret") {
		g.Secret = "base64"
	}
}

// signatureValue checks that a receiver can take the value apart. The time stamp is a run of digits, a signature has a known length.
func (d *decoder) signatureValue(s section, g *Signature, stamp string) {
	where := d.names[s.node] + ".value"
	carried := stampOf(g.Value)
	switch {
	case !printable(g.Value):
		s.breaks("value", where+" has characters that a header cannot have", "write printable ASCII")
	case strings.Count(g.Value, "{signature}")+strings.Count(g.Value, "{signatures}") != 1:
		s.breaks("value", where+" needs the signature exactly once", "write {signature}, or {signatures} for those of all active secrets")
	case strings.Count(g.Value, "{timestamp") > 1 || carried != stamp && carried != "":
		s.breaks("value", where+" has a time stamp that is not the signed one", "write the one of over, once")
	case carried != "" && endless(g.Value, carried):
		s.breaks("value", where+" does not show where its time stamp ends", "put something that is not a digit behind it")
	}
}

// endless reports that a digit, or a piece that may begin with one, stands directly behind a piece.
func endless(text, piece string) bool {
	_, after, _ := strings.Cut(text, "{"+piece+"}")
	return after != "" && (after[0] >= '0' && after[0] <= '9' || after[0] == '{')
}
