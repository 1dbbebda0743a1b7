package scenarios

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// CustomProvider is a provider that a scenario describes by itself: JSON over HTTP, one event in each request.
type CustomProvider struct {
	Signature Signature
	// Headers are sent with every request, in file order. Their values are templates.
	Headers []Header
	// ID and Type say where the receiver finds an event's canonical id and its type; Resource and Version, which may be left out, what it is about and how new it is.
	ID, Type, Resource, Version Place
	// Body is the template of the body.
	Body string
	// Types are the event types with their weights, in file order.
	Types []TypeShare
	// SuccessMin and SuccessMax bound the statuses that count as success.
	SuccessMin, SuccessMax int
	// Ends are statuses that end the schedule of a delivery.
	Ends []int
}

// Signature is how a request is signed. Over, Value and the headers are templates: what stands in braces is replaced.
type Signature struct {
	// Scheme is "hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519" or "none", which leaves everything else empty.
	Scheme string
	// Over is what is signed.
	Over string
	// Encoding is "hex" or "base64".
	Encoding string
	// Header carries Value. Join stands between the signatures of several active secrets in {signatures}.
	Header, Value, Join string
	// TimestampHeader is the header that carries the signed time stamp, empty if Value does or none is signed.
	TimestampHeader string
	// Tolerance is how far from the receiver's clock, on either side, a signature may be dated, 0 if no time stamp is signed.
	Tolerance time.Duration
	// Secret is how the text of a secret becomes the key's bytes: "utf8", "base64" or "hex".
	Secret string
}

// Header is one header of a custom provider's requests.
type Header struct{ Name, Value string }

// TypeShare is one event type's part of a custom provider's events.
type TypeShare struct {
	Name   string
	Weight float64
}

// Place is where the receiver finds something: in a header, or in the body at a JSON pointer (RFC 6901). The zero value is nowhere.
type Place struct{ Header, Pointer string }

const (
	noSignature     = "none"
	publicKeyScheme = "ed25519"
	// defaultTolerance is what Stripe's libraries use (https://docs.stripe.com/webhooks, November 2026).
	defaultTolerance = 5 * time.Minute
	// maxBody keeps the body of a custom provider below the mebibyte that receivers usually take.
	maxBody = 1_000_000
)

var (
	headerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)
	eventType  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)
	statusSpan = regexp.MustCompile(`^([1-5][0-9][0-9])(?:-([1-5][0-9][0-9]))?$`)
	jsonType   = regexp.MustCompile(`^application/(json|[a-z0-9.-]+\+json)\s*(;.*)?$`)
)

// transportHeaders belong to the connection and not to a provider.
var transportHeaders = []string{
	"Connection", "Content-Encoding", "Content-Length", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// ownProvider reads a provider that the scenario brings.
func (d *decoder) ownProvider(n *yaml.Node, p *ProviderSetting, fields []field) {
	c := &CustomProvider{SuccessMin: 200, SuccessMax: 299}
	p.Custom = c
	var kind, file string
	s := d.mapping(n, append([]field{
		{"provider", true, d.oneOf(&kind, "kinds of providers", []string{ownProvider})},
		{"signature", true, func(n *yaml.Node) { d.signature(n, &c.Signature) }},
		{"headers", false, func(n *yaml.Node) { c.Headers = d.headers(n) }},
		{"id", true, d.where(&c.ID)},
		{"type", true, d.where(&c.Type)},
		{"resource", false, d.where(&c.Resource)},
		{"version", false, d.where(&c.Version)},
		{"body", false, d.template(&c.Body, bodyPieces(), true)},
		{"body_file", false, func(n *yaml.Node) { c.Body = d.bodyFile(n, &file) }},
		{"types", true, func(n *yaml.Node) { c.Types = d.types(n) }},
		{"success", false, d.success(c)},
		{"ends", false, func(n *yaml.Node) { c.Ends = d.statuses(n) }},
	}, fields...))
	for _, t := range c.Types {
		d.custom[p.Name] = append(d.custom[p.Name], t.Name)
	}
	if !providerName.MatchString(p.Name) || strings.HasSuffix(p.Name, "-previous") {
		d.failAt(p.Line, fmt.Sprintf("%q cannot be a provider's name", p.Name), `write small letters, digits and dashes, not "-previous" at the end: the name becomes part of a URL and of an environment variable`)
	}
	if s.has("body") == s.has("body_file") {
		d.failAt(n.Line, fmt.Sprintf("providers.%s has %s", p.Name, map[bool]string{true: "both body and body_file", false: "no body"}[s.has("body")]), "write either body or body_file")
		return
	}
	for _, status := range c.Ends {
		if s.good("success", "ends") && status >= c.SuccessMin && status <= c.SuccessMax {
			s.breaks("ends", fmt.Sprintf("status %d is a success", status), "remove it here or narrow success")
		}
	}
	if c.Signature.Scheme == noSignature && s.has("secrets") {
		s.breaks("secrets", fmt.Sprintf("%s signs nothing", p.Name), "remove secrets, or choose a scheme")
	}
	if s.good("signature", "headers", "id", "type", "resource", "version", "body", "body_file") {
		d.fits(s, c)
	}
}

func (d *decoder) headers(n *yaml.Node) []Header {
	if n.Kind != yaml.MappingNode {
		d.fail(n, d.is(n), `write a mapping of headers, such as {X-Event: "{type}"}`)
		return nil
	}
	var headers []Header
	before := len(d.errs)
	var fields []field
	seen := map[string]bool{}
	for key := range pairs(n) {
		if key.Kind != yaml.ScalarNode || slices.Contains(keysOf(fields), key.Value) {
			continue // mapping reports it.
		}
		canonical := http.CanonicalHeaderKey(key.Value)
		switch {
		case !headerName.MatchString(key.Value):
			d.fail(key, fmt.Sprintf("%q is not the name of a header", key.Value), "write letters, digits and dashes")
		case slices.Contains(transportHeaders, canonical):
			d.fail(key, fmt.Sprintf("header %s belongs to the connection", key.Value), "remove it")
		case seen[canonical]:
			d.fail(key, fmt.Sprintf("header %s is there twice", key.Value), "remove one; capitals do not count")
		}
		seen[canonical] = true
		fields = append(fields, field{key.Value, false, func(n *yaml.Node) {
			h := Header{Name: key.Value}
			d.template(&h.Value, headerPieces(), false)(n)
			if !printable(h.Value) {
				d.fail(n, d.names[n]+" has characters that a header cannot have", "write printable ASCII")
			}
			headers = append(headers, h)
		}})
	}
	d.mapping(n, fields)
	if len(d.errs) > before {
		d.bad[n] = true
	}
	return headers
}

// printable reports text that a header can carry.
func printable(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// headerName reads the name of a header.
func (d *decoder) headerName(dst *string) func(*yaml.Node) {
	return func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || !headerName.MatchString(n.Value) || slices.Contains(transportHeaders, http.CanonicalHeaderKey(n.Value)) {
			d.fail(n, d.is(n), "write the name of a header, such as X-Acme-Signature")
			return
		}
		*dst = n.Value
	}
}

// where reads a place: "header X-Acme-Id" or "body /data/id".
func (d *decoder) where(dst *Place) func(*yaml.Node) {
	return func(n *yaml.Node) {
		kind, what, _ := strings.Cut(n.Value, " ")
		what = strings.TrimSpace(what)
		switch {
		case n.Kind == yaml.ScalarNode && kind == "header" && headerName.MatchString(what):
			*dst = Place{Header: what}
		case n.Kind == yaml.ScalarNode && kind == "body" && isPointer(what):
			*dst = Place{Pointer: what}
		default:
			d.fail(n, d.is(n), `write where it stands: "header X-Acme-Id" or "body /data/id"`)
		}
	}
}

func (d *decoder) types(n *yaml.Node) []TypeShare {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.fail(n, d.is(n), "write the share of each event type, such as {order.created: 3, order.updated: 1}")
		return nil
	}
	var types []TypeShare
	var fields []field
	for key := range pairs(n) {
		if slices.Contains(keysOf(fields), key.Value) {
			continue // mapping reports it.
		}
		if key.Kind == yaml.ScalarNode && !eventType.MatchString(key.Value) {
			d.fail(key, fmt.Sprintf("%q cannot be an event type", key.Value), "write letters, digits, dots, dashes, underscores, colons and slashes")
			continue
		}
		fields = append(fields, field{key.Value, false, func(n *yaml.Node) {
			t := TypeShare{Name: key.Value}
			d.number(&t.Weight, span{low: 0, high: maxWeight, aboveLow: true})(n)
			types = append(types, t)
		}})
	}
	d.mapping(n, fields)
	return types
}

// success reads "200-299" or "200".
func (d *decoder) success(c *CustomProvider) func(*yaml.Node) {
	return func(n *yaml.Node) {
		m := statusSpan.FindStringSubmatch(n.Value)
		if n.Kind != yaml.ScalarNode || m == nil || m[2] != "" && m[2] < m[1] {
			d.fail(n, d.is(n), "write a status or a span of them, such as 200-299")
			return
		}
		c.SuccessMin, _ = strconv.Atoi(m[1])
		if c.SuccessMax = c.SuccessMin; m[2] != "" {
			c.SuccessMax, _ = strconv.Atoi(m[2])
		}
	}
}

// directory is where files beside a scenario stand, empty for one of the catalogue.
func directory(nameOrPath string) string {
	if !isPath(nameOrPath) {
		return ""
	}
	return filepath.Dir(filepath.FromSlash(nameOrPath))
}
