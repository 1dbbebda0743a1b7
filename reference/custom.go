package reference

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"time"
)

// CustomScheme describes a provider that the receiver does not know by itself: how it signs its requests, and where it puts what the receiver needs. Its bodies are
// JSON, with one event in each request. It holds no secret and can be sent as JSON.
type CustomScheme struct {
	// Scheme is "hmac-sha256", "hmac-sha1", "hmac-sha512", "ed25519", or "none": then everybody who can reach the receiver is believed, and no secret is needed.
	Scheme string `json:"scheme"`
	// Over is what is signed, with names in braces for what differs between requests: {timestamp} {timestamp_ms} {id} {method} {url} {path} {body}. {path} has the
	// query with it; {id} stands for the header of ID.
	Over string `json:"over,omitempty"`
	// Encoding of a signature is "hex" or "base64".
	Encoding string `json:"encoding,omitempty"`
	// Header carries the signature in the form of Value: {signature}, or {signatures} for several with Join between them, and perhaps the {timestamp} or
	// {timestamp_ms} that is signed. It must match as a whole.
	Header string `json:"header,omitempty"`
	Value  string `json:"value,omitempty"`
	Join   string `json:"join,omitempty"`
	// TimestampHeader is the header that holds the signed time stamp where Value does not.
	TimestampHeader string `json:"timestamp_header,omitempty"`
	// Tolerance is how far a signed time stamp may lie from now, in both directions. 0: as far as that of the receiver's other providers.
	Tolerance time.Duration `json:"tolerance_ns,omitempty"`
	// Secret is how a secret's text becomes the key: "utf8" as it stands, "base64" or "hex" decoded, without what stands before an underscore ("whsec_").
	// For ed25519 it is the public key of 32 bytes.
	Secret string `json:"secret,omitempty"`
	// ContentType is the media type of the bodies. "": application/json.
	ContentType string `json:"content_type,omitempty"`
	// ID and Type say where the canonical id and the type of an event stand; Resource and Version, which may be nowhere, what it is about and how new it is. A version
	// is a whole number or a point in time.
	ID       CustomPlace `json:"id"`
	Type     CustomPlace `json:"type"`
	Resource CustomPlace `json:"resource,omitzero"`
	Version  CustomPlace `json:"version,omitzero"`
}

// CustomPlace is a header or a JSON pointer (RFC 6901) into the body, where a text or a number stands. The zero value is nowhere.
type CustomPlace struct {
	Header  string `json:"header,omitempty"`
	Pointer string `json:"pointer,omitempty"`
}

const noSignature = "none"

// needsSecret reports whether requests of the provider can be verified. Only a description can say that they cannot.
func (p ProviderConfig) needsSecret() bool { return p.Custom == nil || p.Custom.Scheme != noSignature }

// customHook knows one described provider.
type customHook struct {
	mediaType string
	// header is where the signature stands, empty if there is none; value takes it apart, over puts together what was signed.
	header, stampHeader, idHeader string
	value                         customValue
	over                          []customPart
	tolerance                     time.Duration
	keys                          []customKey
	places                        customPlaces
}

// customKey reports whether a signature is one of its secret over a message, in a time that does not depend on where they differ. The secret is reachable
// only through the closure, so no %v prints it.
type customKey func(message, signature []byte) bool

// typedHook is a hook whose provider sends JSON under another media type than application/json.
type typedHook interface {
	hook
	contentType() string
}

func (h *customHook) contentType() string { return h.mediaType }

// newHook makes the hook of the described provider. An error says everything that is wrong.
func (c *CustomScheme) newHook(secrets []Secret) (hook, error) {
	mediaType, _, _ := strings.Cut(cmp.Or(c.ContentType, "application/json"), ";")
	h := &customHook{mediaType: strings.TrimSpace(mediaType), tolerance: c.Tolerance}
	var err error
	if h.places, err = newCustomPlaces(c); c.Scheme == noSignature || err != nil {
		return h, err
	}
	h.header, h.stampHeader, h.idHeader = http.CanonicalHeaderKey(c.Header), http.CanonicalHeaderKey(c.TimestampHeader), http.CanonicalHeaderKey(c.ID.Header)
	newHash, size, err := customScheme(c.Scheme)
	if err != nil {
		return nil, err
	}
	value, valueErr := newCustomValue(c, size)
	over, overErr := customParts(c.Over, "timestamp", "timestamp_ms", "id", "method", "url", "path", "body")
	h.value, h.over = value, over
	err = errors.Join(valueErr, overErr, h.consistent())
	if h.header == "" {
		err = errors.Join(err, errors.New("set Header: nobody knows where the signature stands"))
	}
	for _, secret := range secrets {
		key, keyErr := newCustomKey(newHash, c.Secret, secret)
		h.keys, err = append(h.keys, key), errors.Join(err, keyErr)
	}
	return h, err
}

// consistent checks that what is signed can be known.
func (h *customHook) consistent() error {
	var stamps []string
	for _, p := range h.over {
		switch p.piece {
		case "timestamp", "timestamp_ms":
			stamps = append(stamps, p.piece)
		case "id":
			if h.idHeader == "" {
				return errors.New("the id is signed, but it stands in the body: name a header in ID, or sign the body")
			}
		}
	}
	stamps = slices.Compact(stamps)
	switch carried := h.value.stamp; {
	case len(stamps) > 1:
		return errors.New("sign one time stamp, in seconds or in milliseconds")
	case len(stamps) == 0 && carried != "":
		return fmt.Errorf("the value holds {%s}, which is not signed and proves nothing", carried)
	case len(stamps) == 1 && carried != "" && carried != stamps[0]:
		return fmt.Errorf("the value holds {%s}, but {%s} is signed", carried, stamps[0])
	case len(stamps) == 1 && carried == "" && h.stampHeader == "":
		return fmt.Errorf("{%s} is signed, but nothing says where it stands: set TimestampHeader", stamps[0])
	case len(stamps) == 1:
		h.value.stamp = stamps[0]
	}
	return nil
}

// verify checks the signature before anything in the body is believed.
func (h *customHook) verify(d *delivery, w window) error {
	if h.header == "" {
		return nil // Scheme "none".
	}
	stamp, signatures, ok := h.value.parse(onlyHeader(d.header, h.header))
	if !ok {
		return errUnsigned
	}
	if h.value.stamp != "" {
		if h.stampHeader != "" {
			stamp = onlyHeader(d.header, h.stampHeader)
		}
		if err := h.inTime(stamp, d.now, w); err != nil {
			return err
		}
	}
	message := h.message(d, stamp)
	for _, key := range h.keys {
		for _, signature := range signatures {
			if key(message, signature) {
				return nil
			}
		}
	}
	return errForged
}

// inTime checks a time stamp as it was sent.
func (h *customHook) inTime(stamp string, now time.Time, w window) error {
	millis, ok := decimal(stamp)
	if h.value.stamp == "timestamp" {
		ok = ok && millis <= maxUnixSeconds
		millis *= 1000
	}
	if !ok || millis > maxUnixSeconds*1000 {
		return errUnsigned
	}
	if h.tolerance > 0 {
		w = window{past: h.tolerance, future: h.tolerance}
	}
	return w.check(millis, now)
}

// message is what was signed.
func (h *customHook) message(d *delivery, stamp string) []byte {
	message := make([]byte, 0, len(d.body)+256)
	for _, p := range h.over {
		message = append(message, p.text...)
		switch p.piece {
		case "timestamp", "timestamp_ms":
			message = append(message, stamp...)
		case "id":
			message = append(message, onlyHeader(d.header, h.idHeader)...)
		case "method":
			message = append(message, d.method...)
		case "url":
			message = append(message, d.url()...)
		case "path":
			message = append(message, pathOf(d.url())...)
		case "body":
			message = append(message, d.body...)
		}
	}
	return message
}

// pathOf is a URL without scheme and host.
func pathOf(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	at := strings.IndexByte(url, '/')
	if at < 0 {
		return "/"
	}
	return url[at:]
}

// customScheme returns the hash of an HMAC, nil for ed25519, and the length of a signature.
func customScheme(name string) (newHash func() hash.Hash, size int, err error) {
	switch name {
	case "hmac-sha256":
		return sha256.New, sha256.Size, nil
	case "hmac-sha1":
		return sha1.New, sha1.Size, nil
	case "hmac-sha512":
		return sha512.New, sha512.Size, nil
	case "ed25519":
		return nil, ed25519.SignatureSize, nil
	default:
		return nil, 0, fmt.Errorf("unknown scheme %q: use hmac-sha256, hmac-sha1, hmac-sha512, ed25519 or none", name)
	}
}

// newCustomKey reads a secret. An error does not show it.
func newCustomKey(newHash func() hash.Hash, form string, secret Secret) (customKey, error) {
	raw, err := customKeyBytes(form, string(secret))
	switch {
	case err != nil:
		return nil, err
	case newHash != nil:
		return func(message, signature []byte) bool {
			mac := hmac.New(newHash, raw)
			mac.Write(message)
			return hmac.Equal(mac.Sum(nil), signature)
		}, nil
	case len(raw) != ed25519.PublicKeySize:
		return nil, fmt.Errorf("a public key of ed25519 has %d bytes, this one has %d", ed25519.PublicKeySize, len(raw))
	default:
		return func(message, signature []byte) bool { return ed25519.Verify(raw, message, signature) }, nil
	}
}

// customKeyBytes decodes the text of a secret. Neither base64 nor hexadecimal has an underscore: what ends with one is a mark of its kind, such as "whsec_".
func customKeyBytes(form, secret string) ([]byte, error) {
	text := secret[strings.LastIndexByte(secret, '_')+1:]
	switch form {
	case "utf8":
		return []byte(secret), nil
	case "base64":
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil && len(raw) > 0 {
			return raw, nil
		}
	case "hex":
		if raw, err := hex.DecodeString(text); err == nil && len(raw) > 0 {
			return raw, nil
		}
	default:
		return nil, fmt.Errorf("unknown form %q of secrets: use utf8, base64 or hex", form)
	}
	return nil, fmt.Errorf("the secret is not %s", form)
}
