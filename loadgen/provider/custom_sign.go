package provider

import (
	"crypto/ed25519"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"strconv"
	"strings"
)

// customSigner signs the requests of a described provider.
type customSigner struct {
	scheme, encoding, secret string
	idHeader, join           string
	over                     *template[customSigning]
	// mark appends the signature of a message.
	mark func(dst []byte, secret string, message []byte) []byte
	// headers are that of the signature, and those that show the signature's clock.
	headers headers
	values  []*template[customSigning]
	keys    parsed[ed25519.PrivateKey]
}

// customSigning is what the pieces of a signature are filled from.
type customSigning struct {
	signer  *customSigner
	request *Request
	with    Signing
	message []byte
}

// newCustomSigner reads how a provider signs; stamped are its headers that show the signature's clock.
func newCustomSigner(c Custom, stamped []CustomHeader) (*customSigner, error) {
	g := c.Signature
	s := &customSigner{scheme: g.Scheme, encoding: g.Encoding, secret: g.Secret, idHeader: http.CanonicalHeaderKey(c.IDHeader), join: g.Join}
	if s.scheme == "none" {
		if len(stamped) > 0 {
			return nil, errors.New("a header shows the signature's clock, but nothing is signed")
		}
		return s, nil
	}
	var errs []error
	if s.mark = s.marker(); s.mark == nil {
		errs = append(errs, fmt.Errorf("unknown scheme %q", g.Scheme))
	}
	if g.Encoding != "hex" && g.Encoding != "base64" {
		errs = append(errs, fmt.Errorf("unknown encoding %q", g.Encoding))
	}
	if known := g.Secret == "base64" || g.Secret == "hex" || g.Secret == "utf8" && g.Scheme != "ed25519"; !known {
		errs = append(errs, fmt.Errorf("%q is not a form of a secret of %s", g.Secret, g.Scheme))
	}
	if g.Header == "" || strings.Count(g.Value, "{signature}")+strings.Count(g.Value, "{signatures}") != 1 {
		errs = append(errs, errors.New("the signature needs a header, and stands in its value exactly once"))
	}
	var err error
	s.over, _, err = compileText(g.Over, slotsOf(overSlots()))
	errs = append(errs, err)
	for _, h := range append([]CustomHeader{{g.Header, g.Value}}, stamped...) {
		t, _, err := compileText(h.Value, slotsOf(valueSlots()))
		errs = append(errs, err)
		s.headers, s.values = append(s.headers, http.CanonicalHeaderKey(h.Name)), append(s.values, t)
	}
	return s, errors.Join(errs...)
}

func slotsOf(slots map[string]slot[customSigning]) func(string) slot[customSigning] {
	return func(piece string) slot[customSigning] { return slots[piece] }
}

// overSlots are the pieces that can be signed.
func overSlots() map[string]slot[customSigning] {
	slots := clockSlots()
	slots["id"] = words(func(v *customSigning) string { return v.request.Header.Get(v.signer.idHeader) })
	slots["method"] = literal[customSigning](http.MethodPost)
	slots["url"] = words(func(v *customSigning) string { return v.with.URL })
	slots["path"] = words(func(v *customSigning) string { return pathOf(v.with.URL) })
	slots["body"] = words(func(v *customSigning) []byte { return v.request.Body })
	return slots
}

// valueSlots are the pieces of a header that shows a signature or its clock.
func valueSlots() map[string]slot[customSigning] {
	slots := clockSlots()
	slots["signature"] = func(dst []byte, v *customSigning) []byte { return v.signer.mark(dst, firstSecret(v.with), v.message) }
	slots["signatures"] = func(dst []byte, v *customSigning) []byte {
		secrets := v.with.Secrets
		if len(secrets) == 0 {
			secrets = []string{""}
		}
		for i, secret := range secrets {
			if i > 0 {
				dst = append(dst, v.signer.join...)
			}
			dst = v.signer.mark(dst, secret, v.message)
		}
		return dst
	}
	return slots
}

func clockSlots() map[string]slot[customSigning] {
	return map[string]slot[customSigning]{
		"timestamp":    func(dst []byte, v *customSigning) []byte { return strconv.AppendInt(dst, v.with.Now.Unix(), 10) },
		"timestamp_ms": func(dst []byte, v *customSigning) []byte { return strconv.AppendInt(dst, v.with.Now.UnixMilli(), 10) },
	}
}

// pathOf is a URL from its path on, with the query.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if at := strings.IndexAny(rest, "/?"); at >= 0 && rest[at] == '/' {
		return rest[at:]
	} else if at >= 0 {
		return "/" + rest[at:]
	}
	return "/"
}

func (s *customSigner) sign(r *Request, with Signing) {
	if s.over == nil {
		return
	}
	v := customSigning{signer: s, request: r, with: with}
	v.message = s.over.append(make([]byte, 0, len(r.Body)+128), &v)
	values := make([]string, len(s.values))
	for i, t := range s.values {
		values[i] = string(t.append(nil, &v))
	}
	s.headers.set(r, values...)
}

// marker is the scheme, nil if nobody knows it.
func (s *customSigner) marker() func([]byte, string, []byte) []byte {
	switch s.scheme {
	case "hmac-sha256":
		return s.hmac(sha256.New)
	case "hmac-sha1":
		return s.hmac(sha1.New)
	case "hmac-sha512":
		return s.hmac(sha512.New)
	case "ed25519":
		return func(dst []byte, secret string, message []byte) []byte {
			return s.encode(dst, ed25519.Sign(s.keys.of(secret, s.privateKey), message))
		}
	default:
		return nil
	}
}

func (s *customSigner) hmac(newHash func() hash.Hash) func([]byte, string, []byte) []byte {
	return func(dst []byte, secret string, message []byte) []byte {
		var mac [sha512.Size]byte
		return s.encode(dst, sum(mac[:0], newHash, s.key(secret), message))
	}
}

func (s *customSigner) encode(dst, raw []byte) []byte {
	if s.encoding == "base64" {
		return base64.StdEncoding.AppendEncode(dst, raw)
	}
	return hex.AppendEncode(dst, raw)
}

// key is what a secret's text stands for. What cannot be decoded is used as it is, so that every secret signs.
func (s *customSigner) key(secret string) string {
	text := secret[strings.LastIndexByte(secret, '_')+1:]
	switch s.secret {
	case "base64":
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			return string(raw)
		}
	case "hex":
		if raw, err := hex.DecodeString(text); err == nil {
			return string(raw)
		}
	}
	return secret
}

// privateKey reads a seed, or a seed with its public key. Any other text is a pass phrase.
func (s *customSigner) privateKey(secret string) ed25519.PrivateKey {
	raw := []byte(s.key(secret))
	if len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize {
		seed := sha256.Sum256([]byte(secret))
		raw = seed[:]
	}
	return ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
}

// text is how key bytes are written.
func (s *customSigner) text(raw []byte) string {
	if s.secret == "base64" {
		return base64.StdEncoding.EncodeToString(raw)
	}
	return hex.EncodeToString(raw)
}

// newSecret makes a secret of 32 bytes. One that is used as text is written in hexadecimal.
func (s *customSigner) newSecret(random [32]byte) string { return s.text(random[:]) }

// verification returns what the receiver is given, nil where that is the secret itself.
func (s *customSigner) verification() func(string) string {
	if s.scheme != "ed25519" {
		return nil
	}
	return func(secret string) string {
		public, _ := s.keys.of(secret, s.privateKey).Public().(ed25519.PublicKey)
		return s.text(public)
	}
}
