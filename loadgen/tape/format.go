package tape

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Format is the version of recordings that this package writes, and the newest that it reads.
	Format = 1
	// Kind is what the first line of a recording says it is.
	Kind = "floodproof-recording"
	// MaxBody is the largest body that a recording can hold, in bytes. JSON may need six for one of them.
	MaxBody = 8 << 20
	// maxLine bounds a line, for readers that are given something else.
	maxLine = 64 << 20
)

// Header is the first line of a recording.
type Header struct {
	// Format is the version of the format. Readers refuse a newer one than they know.
	Format int `json:"format"`
	// Kind is [Kind].
	Kind string `json:"kind"`
	// Scrubbed: personal data was replaced and signatures left out before anything was written.
	Scrubbed bool `json:"scrubbed"`
	// StartedAt is when the recorder began; offsets count from here.
	StartedAt time.Time `json:"started_at"`
	// Version is that of the floodproof that recorded, empty in an unversioned build.
	Version string `json:"version"`
}

// check reports what makes a recording with this header unreadable.
func (h Header) check() error {
	switch {
	case h.Kind != Kind:
		return fmt.Errorf("not a recording: its kind is %q, want %q", h.Kind, Kind)
	case h.Format > Format:
		return fmt.Errorf("the recording has format %d and this floodproof reads up to %d; use a newer floodproof", h.Format, Format)
	case h.Format < 1:
		return fmt.Errorf("format %d does not exist", h.Format)
	}
	return nil
}

// Request is one recorded request with its answer.
type Request struct {
	// At is the wall clock when the request's head had arrived. Offset is the same since the start of the recording, by a clock that nobody sets.
	At     time.Time
	Offset time.Duration
	// Provider is who sent it, as far as path and headers tell. Empty: nobody knows.
	Provider string
	Method   string
	// Path is the request target: path and query as they were sent, but bytes above 127 percent-encoded.
	Path string
	// Headers are sorted by name; the values of one name keep their order. Host is the first.
	Headers []Field
	// Redacted are the names of headers that were there and whose values were not stored: signatures, credentials, cookies.
	Redacted []string
	Body     Body
	// Status is that of the answer; 502 with Unreachable if the recorder answered itself because the endpoint did not, and 0 if the sender went
	// before there was an answer.
	Status      int
	Unreachable bool
	// Duration is from the arrival of the head to the status of the answer.
	Duration time.Duration
}

// Field is one header.
type Field struct{ Name, Value string }

// Body is a recorded body, or what is known of one that was not stored. The zero value is the empty body.
type Body struct {
	// Bytes is the body, nil if it is empty or was left out.
	Bytes []byte
	// LeftOut: the body was not stored, because it could not be scrubbed or was too large. Length and SHA256 (in hex) are those of the body as it was sent.
	LeftOut bool
	Length  int64
	SHA256  string
}

// line is a Request as it is written. Exactly one of the three forms of a body is there.
type line struct {
	At          *time.Time `json:"at"`
	OffsetMS    *float64   `json:"offset_ms"`
	Provider    string     `json:"provider"`
	Method      string     `json:"method"`
	Path        string     `json:"path"`
	Headers     []Field    `json:"headers"`
	Redacted    []string   `json:"redacted,omitempty"`
	Body        *string    `json:"body,omitempty"`
	BodyBase64  *[]byte    `json:"body_base64,omitempty"`
	BodyBytes   *int64     `json:"body_bytes,omitempty"`
	BodySHA256  string     `json:"body_sha256,omitempty"`
	Status      *int       `json:"status"`
	Unreachable bool       `json:"unreachable,omitempty"`
	DurationMS  *float64   `json:"duration_ms"`
}

// MarshalJSON writes [name, value], or [name, base64 of the value, "base64"] if the value is not UTF-8.
func (f Field) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(f.Value) {
		return json.Marshal([]string{f.Name, f.Value})
	}
	return json.Marshal([]string{f.Name, base64.StdEncoding.EncodeToString([]byte(f.Value)), "base64"})
}

// UnmarshalJSON reads what MarshalJSON writes and nothing else.
func (f *Field) UnmarshalJSON(data []byte) error {
	var parts []string
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	switch {
	case len(parts) == 2:
		f.Name, f.Value = parts[0], parts[1]
	case len(parts) == 3 && parts[2] == "base64":
		value, err := base64.StdEncoding.DecodeString(parts[1])
		if err != nil {
			return fmt.Errorf("header %q: %w", parts[0], err)
		}
		f.Name, f.Value = parts[0], string(value)
	default:
		return errors.New(`a header is ["name", "value"] or ["name", "value in base64", "base64"]`)
	}
	return nil
}

// encode writes the request as one line without its end.
func (r *Request) encode() ([]byte, error) {
	at, offset, duration := r.At, millis(r.Offset), millis(r.Duration)
	l := line{
		At: &at, OffsetMS: &offset, Provider: r.Provider, Method: r.Method, Path: r.Path, Headers: r.Headers, Redacted: r.Redacted,
		Status: &r.Status, Unreachable: r.Unreachable, DurationMS: &duration,
	}
	if l.Headers == nil {
		l.Headers = []Field{}
	}
	switch {
	case r.Body.LeftOut:
		l.BodyBytes, l.BodySHA256 = &r.Body.Length, r.Body.SHA256
	case utf8.Valid(r.Body.Bytes):
		text := string(r.Body.Bytes)
		l.Body = &text
	default:
		l.BodyBase64 = &r.Body.Bytes
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // People read these lines, and < is longer than what it stands for.
	if err := e.Encode(l); err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	return []byte(strings.TrimSuffix(out.String(), "\n")), nil
}

// decode reads one line.
func decode(text []byte) (Request, error) {
	var l line
	if err := strict(text, &l); err != nil {
		return Request{}, err
	}
	if err := l.check(); err != nil {
		return Request{}, err
	}
	r := Request{
		At: *l.At, Offset: fromMillis(*l.OffsetMS), Provider: l.Provider, Method: l.Method, Path: l.Path, Headers: l.Headers, Redacted: l.Redacted,
		Status: *l.Status, Unreachable: l.Unreachable, Duration: fromMillis(*l.DurationMS),
	}
	switch {
	case l.Body != nil && *l.Body != "":
		r.Body.Bytes = []byte(*l.Body)
	case l.BodyBase64 != nil && len(*l.BodyBase64) > 0:
		r.Body.Bytes = *l.BodyBase64
	case l.BodyBytes != nil:
		r.Body = Body{LeftOut: true, Length: *l.BodyBytes, SHA256: l.BodySHA256}
	}
	return r, nil
}

// check reports what a line must have and has not, or has and could not be sent.
func (l *line) check() error {
	bodies := 0
	for _, there := range []bool{l.Body != nil, l.BodyBase64 != nil, l.BodyBytes != nil} {
		if there {
			bodies++
		}
	}
	switch {
	case l.At == nil || l.OffsetMS == nil || l.Status == nil || l.DurationMS == nil || l.Headers == nil:
		return errors.New("at, offset_ms, headers, status and duration_ms have to be there")
	case !isMillis(*l.OffsetMS) || !isMillis(*l.DurationMS):
		return errors.New("offset_ms and duration_ms have to be from 0 to a year")
	case !isToken(l.Method):
		return fmt.Errorf("method %q is none", l.Method)
	case !isTarget(l.Path):
		return fmt.Errorf("path %q does not begin with / or has characters that no path has", l.Path)
	case bodies != 1:
		return errors.New("exactly one of body, body_base64 and body_bytes has to be there")
	case (l.BodyBytes != nil) != (len(l.BodySHA256) == 64) || l.BodyBytes != nil && *l.BodyBytes < 0:
		return errors.New("a body that was left out has body_bytes and body_sha256, 64 hexadecimal digits")
	case *l.Status < 0 || *l.Status > 999:
		return fmt.Errorf("status %d is none", *l.Status)
	}
	for _, f := range l.Headers {
		if !isToken(f.Name) || strings.ContainsAny(f.Value, "\r\n\x00") {
			return fmt.Errorf("header %q cannot be sent", f.Name)
		}
	}
	return nil
}

// maxMillis is the longest time in a recording, 366 days.
const maxMillis = 366 * 24 * 3600 * 1000

func isMillis(ms float64) bool { return ms >= 0 && ms <= maxMillis }

// millis is a duration as the file shows it, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Round(time.Microsecond).Microseconds()) / 1000 }

func fromMillis(ms float64) time.Duration {
	return time.Duration(math.Round(ms*1000)) * time.Microsecond
}

// isToken reports a token of RFC 9110, section 5.6.2: methods and header names.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isAlnum(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// isTarget reports a request target in origin form: visible ASCII that begins with a slash.
func isTarget(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return strings.HasPrefix(s, "/")
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
