package reference

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Secret is a signing secret exactly as the provider shows it. It hides itself from fmt, log/slog and encoding/json.
type Secret string

// String returns a placeholder.
func (Secret) String() string { return "[redacted]" }

// GoString returns a placeholder.
func (Secret) GoString() string { return "[redacted]" }

// LogValue returns a placeholder.
func (Secret) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// MarshalText returns a placeholder.
func (Secret) MarshalText() ([]byte, error) { return []byte("[redacted]"), nil }

// delivery is one request as a provider's rules see it.
type delivery struct {
	header http.Header
	body   []byte
	// method and url are what some providers sign; url returns the one under which the sender addressed the request.
	method string
	url    func() string
	now    time.Time
}

// digest is an HMAC-SHA256.
type digest = [sha256.Size]byte

// keyring are the active secrets of one provider, ready to use. It is safe for concurrent use.
type keyring []*macKey

func newKeyring(secrets []Secret) keyring {
	keys := make(keyring, 0, len(secrets))
	for _, secret := range secrets {
		keys = append(keys, newMACKey(secret))
	}
	return keys
}

// signed reports whether one of the digests is that of prefix + body + suffix under one of the active secrets. Each digest is compared in constant time;
// which secret matched is no secret.
func (k keyring) signed(digests []digest, prefix string, body []byte, suffix string) bool {
	if len(digests) == 0 {
		return false
	}
	for _, key := range k {
		if key.signed(digests, prefix, body, suffix) {
			return true
		}
	}
	return false
}

// macKey computes with one secret. It keeps warm states, because setting up an HMAC costs as much as hashing
// a few hundred bytes. The secret itself is reachable only through the closure of the pool, so no %v prints it.
type macKey struct{ states sync.Pool }

type macState struct {
	mac     hash.Hash
	scratch []byte
	sum     []byte
}

func newMACKey(secret Secret) *macKey {
	key := []byte(secret)
	return &macKey{states: sync.Pool{New: func() any {
		return &macState{mac: hmac.New(sha256.New, key), sum: make([]byte, 0, sha256.Size)}
	}}}
}

func (k *macKey) signed(digests []digest, prefix string, body []byte, suffix string) bool {
	s, _ := k.states.Get().(*macState)
	defer k.states.Put(s)
	s.mac.Reset()
	s.writeString(prefix)
	_, _ = s.mac.Write(body) // A hash never returns an error.
	s.writeString(suffix)
	s.sum = s.mac.Sum(s.sum[:0])
	found := false
	for i := range digests {
		found = hmac.Equal(s.sum, digests[i][:]) || found
	}
	return found
}

func (s *macState) writeString(text string) {
	if text == "" {
		return
	}
	s.scratch = append(s.scratch[:0], text...)
	_, _ = s.mac.Write(s.scratch)
}

// hexDigest decodes 64 hexadecimal digits.
func hexDigest(text string) (d digest, ok bool) {
	var buf [2 * sha256.Size]byte
	if len(text) != len(buf) {
		return d, false
	}
	copy(buf[:], text)
	_, err := hex.Decode(d[:], buf[:])
	return d, err == nil
}

// base64Digest decodes 44 characters of padded base64.
func base64Digest(text string) (d digest, ok bool) {
	var buf [44]byte
	var out [33]byte
	if len(text) != len(buf) {
		return d, false
	}
	copy(buf[:], text)
	n, err := base64.StdEncoding.Strict().Decode(out[:], buf[:])
	if err != nil || n != len(d) {
		return d, false
	}
	copy(d[:], out[:])
	return d, true
}

// onlyHeader returns the value of a header that must be there exactly once. The name must be in canonical form.
func onlyHeader(h http.Header, name string) string {
	if values := h[name]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// decimal parses a number of at most 18 digits, nothing else (no sign, no space).
func decimal(text string) (int64, bool) {
	if text == "" || len(text) > 18 {
		return 0, false
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// window is the span of time in which a signature's own time stamp may lie.
type window struct{ past, future time.Duration }

// check refuses a time stamp, in milliseconds, outside the window.
func (w window) check(stamp int64, now time.Time) error {
	age := now.UnixMilli() - stamp
	if age > w.past.Milliseconds() {
		return errExpired
	}
	if -age > w.future.Milliseconds() {
		return errFuture
	}
	return nil
}
