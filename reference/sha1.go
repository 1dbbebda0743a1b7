package reference

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"io"
	"sync"
)

// sha1Digest is an HMAC-SHA1. Collisions of SHA-1 do not help to forge an HMAC (RFC 6151 says so of the weaker MD5), so that the providers that still use it can
// be believed.
type sha1Digest = [sha1.Size]byte

// sha1Keyring are the active secrets of a provider that signs with HMAC-SHA1, ready to use. It is safe for concurrent use, and like a keyring
// it reaches the secrets only through closures.
type sha1Keyring []*sync.Pool

func newSHA1Keyring(secrets []Secret) sha1Keyring {
	keys := make(sha1Keyring, 0, len(secrets))
	for _, secret := range secrets {
		key := []byte(secret)
		keys = append(keys, &sync.Pool{New: func() any { return hmac.New(sha1.New, key) }})
	}
	return keys
}

// signed reports whether the digest is that of prefix + body under one of the active secrets. The comparison takes constant time; which secret matched is no secret.
func (k sha1Keyring) signed(sent sha1Digest, prefix string, body []byte) bool {
	for _, key := range k {
		mac, _ := key.Get().(hash.Hash)
		mac.Reset()
		_, _ = io.WriteString(mac, prefix) // A hash never returns an error.
		_, _ = mac.Write(body)
		var sum sha1Digest
		mac.Sum(sum[:0])
		key.Put(mac)
		if hmac.Equal(sum[:], sent[:]) {
			return true
		}
	}
	return false
}

// hexSHA1 decodes 40 hexadecimal digits.
func hexSHA1(text string) (d sha1Digest, ok bool) {
	if len(text) != hex.EncodedLen(sha1.Size) {
		return d, false
	}
	_, err := hex.Decode(d[:], []byte(text))
	return d, err == nil
}

// base64SHA1 decodes 28 characters of padded base64.
func base64SHA1(text string) (d sha1Digest, ok bool) {
	if len(text) != base64.StdEncoding.EncodedLen(sha1.Size) {
		return d, false
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != len(d) {
		return d, false
	}
	copy(d[:], raw)
	return d, true
}
