package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// customTimeout is that of most built-in providers.
const customTimeout = 10 * time.Second

// Custom describes a provider that is not built in, as plain data: JSON over HTTP, one event in each request. The values of the headers and the body are
// templates, in which a name in braces is replaced: {id} {type} {time} {resource} {version} {attempt}, in a body {pad:N} for text of N bytes, in a header
// {timestamp} and {timestamp_ms} for the clock of the signature, in seconds and milliseconds.
type Custom struct {
	// Name is the path segment and the key in scenarios.
	Name      string
	Signature CustomSignature
	// Headers are sent in this order. Content-Type, User-Agent and Accept have defaults.
	Headers []CustomHeader
	// IDHeader is the header that carries the canonical id, empty if the body does. CanonicalID says in words where it is found.
	IDHeader, CanonicalID string
	// Body is an object or an array in JSON once its pieces are filled in.
	Body string
	// Types are the event types, at least one.
	Types []CustomType
	// SuccessMin and SuccessMax bound the statuses that count as success; Ends are statuses that end the schedule.
	SuccessMin, SuccessMax int
	Ends                   []int
}

// CustomSignature is how a custom provider signs.
type CustomSignature struct {
	// Scheme is "hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", or "none" for a provider that does not sign: then nothing else matters.
	Scheme string
	// Over is the template of what is signed: {timestamp} {timestamp_ms} {id} {method} {url} {path} {body}, where {path} has the query with it.
	Over string
	// Encoding is "hex" or "base64".
	Encoding string
	// Header carries Value, a template: {signature} is that of the current secret, {signatures} those of all active ones with Join between them.
	Header, Value, Join string
	// Tolerance is how far from the receiver's clock, on either side, the published rule lets a signature be dated, 0 where it knows no limit.
	Tolerance time.Duration
	// Secret is how a secret's text becomes the key: "utf8" as it stands, "base64" or "hex" decoded, without what stands before an underscore ("whsec_").
	// A key of ed25519 is its seed of 32 bytes, "base64" or "hex".
	Secret string
}

// CustomHeader is one header of a custom provider.
type CustomHeader struct{ Name, Value string }

// CustomType is an event type with its weight, which is above 0.
type CustomType struct {
	Name   string
	Weight float64
}

// NewCustom builds a provider from its description. Its time-out is ten seconds and it never tries again; [Override] changes that. Event types are drawn by
// weight, whatever the event's version. An error says everything that is wrong.
func NewCustom(c Custom) (*Provider, error) {
	r := &custom{name: c.Name, types: c.Types, idHeader: http.CanonicalHeaderKey(c.IDHeader)}
	err := errors.Join(c.check(), r.compile(c))
	signer, signerErr := newCustomSigner(c, r.stamped)
	if err := errors.Join(err, signerErr); err != nil {
		return nil, fmt.Errorf("describe provider %q: %w", c.Name, err)
	}
	p := &Provider{
		Name: c.Name, CanonicalID: c.CanonicalID, Timeout: customTimeout,
		SuccessMin: c.SuccessMin, SuccessMax: c.SuccessMax,
		MaxBatch: 1, MeanBatch: 1, BatchSize: one,
		Tolerance: c.Signature.Tolerance, FutureTolerance: c.Signature.Tolerance,
		ID:     func(e Event) string { return string(r.appendID(nil, e)) },
		Type:   func(e Event) string { return r.eventType(e) },
		Render: r.render, Sign: signer.sign, PayloadOf: whole,
		NewSecret: signer.newSecret, Verification: signer.verification(),
		Tamper: r.tamperer(),
	}
	if len(c.Ends) > 0 {
		ends := slices.Clone(c.Ends)
		p.Ends = func(a Answer) bool { return slices.Contains(ends, a.Status) }
	}
	return p, nil
}

func (c Custom) check() error {
	var errs []error
	if c.Name == "" {
		errs = append(errs, errors.New("it has no name"))
	}
	if len(c.Types) == 0 || slices.ContainsFunc(c.Types, func(t CustomType) bool { return !(t.Weight > 0) }) {
		errs = append(errs, errors.New("it needs event types, each with a weight above 0"))
	}
	if c.SuccessMin < 100 || c.SuccessMax < c.SuccessMin {
		errs = append(errs, fmt.Errorf("success from %d to %d is no span of statuses", c.SuccessMin, c.SuccessMax))
	}
	return errors.Join(errs...)
}

// custom renders the requests of a described provider.
type custom struct {
	name     string
	types    []CustomType
	idHeader string
	// headers and values are those that do not change with the signature's clock; stamped are the others.
	headers headers
	values  []*template[customEvent]
	stamped []CustomHeader
	body    *template[customEvent]
	// pieces are the names of the body's slots.
	pieces []string
}

// customEvent is what the pieces of a template are filled from.
type customEvent struct {
	e       Event
	attempt int
}

// compile reads the templates.
func (r *custom) compile(c Custom) error {
	slots := r.slots()
	var errs []error
	defaults := []CustomHeader{{"Content-Type", "application/json"}, {"User-Agent", c.Name + "-webhooks/1.0"}, {"Accept", "*/*"}}
	for _, h := range slices.Concat(c.Headers, defaults) {
		name := http.CanonicalHeaderKey(h.Name)
		if slices.Contains(r.headers, name) {
			continue
		}
		if strings.Contains(h.Value, "{timestamp") {
			r.stamped = append(r.stamped, h)
			continue
		}
		t, _, err := compileText(h.Value, func(piece string) slot[customEvent] { return slots[piece] })
		if err != nil {
			errs = append(errs, fmt.Errorf("header %s: %w", h.Name, err))
		}
		r.headers, r.values = append(r.headers, name), append(r.values, t)
	}
	var err error
	r.body, r.pieces, err = compileText(c.Body, func(piece string) slot[customEvent] {
		if n, ok := padLength(piece); ok {
			return func(dst []byte, v *customEvent) []byte { return appendPad(dst, v.e, n) }
		}
		return slots[piece]
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("body: %w", err))
	}
	return errors.Join(errs...)
}

// slots are the pieces that headers and bodies share. None of them needs escaping in JSON.
func (r *custom) slots() map[string]slot[customEvent] {
	return map[string]slot[customEvent]{
		"id":   func(dst []byte, v *customEvent) []byte { return r.appendID(dst, v.e) },
		"type": words(func(v *customEvent) string { return r.eventType(v.e) }),
		"time": func(dst []byte, v *customEvent) []byte { return shown(v.e).AppendFormat(dst, time.RFC3339) },
		"resource": func(dst []byte, v *customEvent) []byte {
			return appendBase62(append(dst, 'r'), draw(v.e.ResourceKey, 1), 11)
		},
		"version": number(func(v *customEvent) uint64 { return uint64(max(v.e.Version, 1)) }),
		"attempt": number(func(v *customEvent) uint64 { return uint64(v.attempt) }),
	}
}

func (r *custom) render(q *Request, d Delivery) {
	v := customEvent{e: standIn(d), attempt: d.Attempt}
	values := make([]string, len(r.values))
	for i, t := range r.values {
		values[i] = string(t.append(nil, &v))
	}
	r.headers.set(q, values...)
	start := len(q.Body)
	q.Body = r.body.append(q.Body, &v)
	if d.Malformed {
		q.Body = cut(q.Body, start)
	}
}

// appendID appends the canonical id: the provider's name and eleven digits of the key to the base 62, all 64 bits, so that no two providers share an id.
func (r *custom) appendID(dst []byte, e Event) []byte {
	return appendBase62(append(append(dst, r.name...), '_'), draw(e.Key, 1), 11)
}

func (r *custom) eventType(e Event) string {
	total := 0.0
	for _, t := range r.types {
		total += t.Weight
	}
	u := float64(draw(e.Draw, 31)>>11) / (1 << 53) * total
	for _, t := range r.types {
		if u -= t.Weight; u < 0 {
			return t.Name
		}
	}
	return r.types[len(r.types)-1].Name // Where rounding left a little.
}

// padLength is the N of {pad:N}.
func padLength(piece string) (int, bool) {
	digits, ok := strings.CutPrefix(piece, "pad:")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 30)
	return int(n), err == nil && n > 0
}

// appendPad appends n bytes of words: a compressor finds in them about what it finds in real bodies, which in random digits it would not.
func appendPad(dst []byte, e Event, n int) []byte {
	end := len(dst) + n
	for salt := uint64(64); len(dst) < end; salt++ {
		dst = append(append(dst, pick(adjectives, draw(e.Draw, salt))...), ' ')
		dst = append(append(dst, pick(streets, draw(e.Draw, salt+1<<32))...), ' ')
	}
	return dst[:end]
}
