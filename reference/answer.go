package reference

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// The whole bodies of the successful answers.
const (
	answerQueued = `{"status":"queued"}` + "\n"
	answerOK     = `{"status":"ok"}` + "\n"
	answerReady  = `{"status":"ready"}` + "\n"
)

// retryAfter is what a sender is told to wait, in seconds: a queue that fails is restarted, or a peak passes, in about that time.
const retryAfter = "1"

func answer(w http.ResponseWriter, status int, body string) {
	h, values := w.Header(), []string{"application/json", "nosniff"}
	h["Content-Type"], h["X-Content-Type-Options"] = values[:1:1], values[1:]
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body) // The sender is gone if this fails; it will try again.
}

// refuse answers anything but success.
func (rc *Receiver) refuse(w http.ResponseWriter, r *http.Request, err error) {
	why, ok := errors.AsType[*refusal](err)
	if !ok {
		why = errInternal
	}
	if why.status == http.StatusServiceUnavailable || why.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", retryAfter)
	}
	rc.cfg.Logger.DebugContext(r.Context(), "request refused", "path", r.URL.Path, "remote", r.RemoteAddr, "status", why.status, "reason", why.reason)
	body, _ := json.Marshal(map[string]string{"error": why.reason}) // A map of strings always marshals.
	answer(w, why.status, string(body)+"\n")
}

// contentTypes are the types of body that a provider sends: plain JSON, unless its hook says otherwise.
func contentTypes(of hook) (kinds []string, wrong *refusal) {
	const plain, formed = "application/json", "application/x-www-form-urlencoded"
	switch of := of.(type) {
	case typedHook:
		return []string{of.contentType()}, errOtherType
	case mixedHook:
		return []string{formed, plain}, errFormType
	case formHook:
		return []string{formed}, errFormType
	case pingHook:
		return []string{plain, formed}, errType
	default:
		return []string{plain}, errType
	}
}

// notNow makes 429 of a failure that is ours, where the provider would not come again after a 5xx.
func notNow(err error, of hook) error {
	if _, only := of.(only429Hook); !only {
		return err
	}
	why, ok := errors.AsType[*refusal](err)
	if !ok {
		why = errInternal
	}
	if why.status < http.StatusInternalServerError {
		return err
	}
	return &refusal{http.StatusTooManyRequests, why.reason}
}

// greeting is the body of a 200 that says nothing about events.
type greeting string

func (greeting) Error() string { return "a greeting, not a delivery" }

// checkContent refuses what the providers' rules do not read.
func checkContent(h http.Header, of hook) error {
	kinds, wrong := contentTypes(of)
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	kind = strings.TrimSpace(kind)
	if !slices.ContainsFunc(kinds, func(known string) bool { return strings.EqualFold(known, kind) }) {
		return wrong
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return errEncoding
	}
	return nil
}

// firstRead is the memory that a request gets for its body before it has sent any of it. Most bodies fit.
const firstRead = 16 << 10

// readBody reads a body of at most limit bytes. Memory grows with the bytes that have arrived, never with
// those that were announced, so a slow or lying sender holds at most firstRead, or twice what it sent.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	size := r.ContentLength
	if size > limit {
		return nil, errTooLarge
	}
	if size < 0 {
		return readGrowing(http.MaxBytesReader(w, r.Body, limit), make([]byte, 0, firstRead), limit+1)
	}
	if size <= firstRead { // a body that says its size has no more than that
		body := make([]byte, size)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, bodyError(err)
		}
		return body, nil
	}
	return readGrowing(r.Body, make([]byte, 0, firstRead), size)
}

// readGrowing reads until the source ends or size bytes are there, and doubles the memory whenever it is full.
func readGrowing(src io.Reader, buf []byte, size int64) ([]byte, error) {
	for int64(len(buf)) < size {
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(int64(2*cap(buf)), size))
			copy(grown, buf)
			buf = grown
		}
		n, err := src.Read(buf[len(buf):min(int64(cap(buf)), size)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, bodyError(err)
		}
	}
	return buf, nil
}

func bodyError(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge
	}
	return errBody
}

func (rc *Receiver) serveHealth(w http.ResponseWriter, r *http.Request) {
	if !rc.readOnly(w, r) {
		return
	}
	answer(w, http.StatusOK, answerOK)
}

func (rc *Receiver) serveReady(w http.ResponseWriter, r *http.Request) {
	if !rc.readOnly(w, r) {
		return
	}
	if len(rc.waiting) == cap(rc.waiting) {
		rc.refuse(w, r, errBusy)
		return
	}
	if err := rc.probe.check(r.Context()); err != nil {
		rc.cfg.Logger.WarnContext(r.Context(), "queue does not answer", "err", err)
		rc.refuse(w, r, errQueueProbe)
		return
	}
	answer(w, http.StatusOK, answerReady)
}

// readOnly refuses all methods but GET and HEAD.
func (rc *Receiver) readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	rc.refuse(w, r, errMethod)
	return false
}

// probe asks a queue whether it is there: at most once a second, however often it is asked itself, because anybody may ask.
type probe struct {
	depther queue.Depther
	mu      sync.Mutex
	asked   time.Time
	err     error
}

// probeEvery is how long an answer is good, probeTimeout how long the queue may take for one.
const (
	probeEvery   = time.Second
	probeTimeout = time.Second
)

func newProbe(q queue.Queue) *probe {
	depther, _ := q.(queue.Depther)
	return &probe{depther: depther}
}

// check returns the queue's last answer. A queue that cannot be asked (no Depther) counts as there.
func (p *probe) check(ctx context.Context) error {
	if p.depther == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) < probeEvery {
		return p.err
	}
	// The answer is everybody's, so it must not depend on the patience of who happened to ask.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	_, p.err = p.depther.Depth(ctx)
	p.asked = time.Now()
	return p.err
}
