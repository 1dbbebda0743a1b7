package sink

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"strings"

	"floodproof/reports/ledger"
)

const (
	// maxBody bounds the notes of a call.
	maxBody = 64 << 10
	// maxID bounds an id before decoding; the longest canonical id of a known provider is far below it. Without a bound a hostile pipeline could fill the ledger.
	maxID = 4 << 10
)

// call is one understood call.
type call struct {
	method string
	id     string
	// event is ledger.None for an id that the run never introduced.
	event  uint32
	poison bool
	step   uint8
	// key is the hash of the idempotency key, 0 without one.
	key uint64
	// version is nil if the body has none.
	version *int64
}

// upsert reports whether a repeat of the call changes nothing.
func (c call) upsert() bool { return c.method == http.MethodPut }

// look reports whether the call changes nothing at all.
func (c call) look() bool { return c.method == http.MethodGet || c.method == http.MethodHead }

// refusal is why a call is not understood, with its status.
type refusal struct {
	status int
	why    string
}

func (r *refusal) Error() string { return r.why }

func refuse(status int, format string, v ...any) *refusal {
	return &refusal{status: status, why: fmt.Sprintf(format, v...)}
}

// belongs cuts the token off the path, still encoded; a path with another token does not belong to this run.
func (s *Sink) belongs(path string) (rest string, ok bool) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	token, err := url.PathUnescape(token)
	return rest, err == nil && token == s.config.Token
}

// splitPath takes "effects/{event_id}[/{step}]" apart. Encoded slashes belong to the names, which is why this works on the encoded path.
func splitPath(rest string) (id, step string, err *refusal) {
	folder, rest, _ := strings.Cut(rest, "/")
	rawID, rawStep, hasStep := strings.Cut(rest, "/")
	switch {
	case folder != "effects" || rawID == "" || strings.Contains(rawStep, "/"):
		return "", "", refuse(http.StatusNotFound, "no such path: use effects/{event_id} or effects/{event_id}/{step}, with / in an id as %%2F")
	case hasStep && rawStep == "":
		return "", "", refuse(http.StatusNotFound, "the path ends in a slash: leave it out, or name a step after it")
	case len(rawID) > maxID:
		return "", "", refuse(http.StatusRequestURITooLong, "the event id is longer than %d bytes", maxID)
	}
	id, idErr := url.PathUnescape(rawID)
	step, stepErr := url.PathUnescape(rawStep)
	if err := errors.Join(idErr, stepErr); err != nil {
		return "", "", refuse(http.StatusBadRequest, "the path is not percent-encoded: %v", err)
	}
	return id, step, nil
}

// read understands a call as far as it can: with a refusal, the call holds what is known of it.
func (s *Sink) read(w http.ResponseWriter, r *http.Request, rest string) (call, *refusal) {
	c := call{method: r.Method, event: ledger.None}
	id, step, bad := splitPath(rest)
	if bad != nil {
		return c, bad
	}
	c.id = id
	if number, flags, ok := s.config.Lookup(id); ok {
		c.event, c.poison = number, flags&ledger.Poison != 0
	}
	number, ok := s.steps[step]
	if !ok {
		return c, refuse(http.StatusNotFound, "unknown step %q: the scenario's steps are %q", step, s.config.Steps)
	}
	c.step = number
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return c, nil
	case http.MethodPost, http.MethodPut:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST, PUT")
		return c, refuse(http.StatusMethodNotAllowed, "%s is not understood: POST is an act, PUT an upsert, GET a look", r.Method)
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" && !s.config.KeysOff {
		c.key = max(1, maphash.String(s.seed, key))
	}
	c.version, bad = s.notes(w, r)
	return c, bad
}

// notes reads the optional body and returns its version. It reads to the end: only then does net/http notice that a client leaves.
func (s *Sink) notes(w http.ResponseWriter, r *http.Request) (*int64, *refusal) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if enc := r.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, refuse(http.StatusUnsupportedMediaType, "content encoding %q is not understood: send plain JSON", enc)
	}
	buf := s.bodies.Get().(*[]byte)
	defer s.bodies.Put(buf)
	b := bytes.NewBuffer((*buf)[:0])
	_, err := io.Copy(b, http.MaxBytesReader(w, r.Body, maxBody))
	*buf = b.Bytes()
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", maxBody)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "read the body: %v", err)
	case len(bytes.TrimSpace(b.Bytes())) == 0:
		return nil, nil
	}
	var notes struct {
		Resource *string           `json:"resource"`
		Version  *int64            `json:"version"`
		Covers   []json.RawMessage `json:"covers"`
	}
	if err := json.Unmarshal(b.Bytes(), &notes); err != nil {
		return nil, refuse(http.StatusBadRequest, `the body is not JSON of the form {"resource": "...", "version": 7, "covers": [...]}: %v`, err)
	}
	return notes.Version, nil
}
