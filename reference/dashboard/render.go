package dashboard

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"floodproof/reference/queue"
)

// frame is what all pages have.
type frame struct {
	// Status is that of the answer, 0 for 200.
	Status int
	Title  string
	// Metrics, History, Listing, Retry and Drop: what this dashboard can do.
	Metrics, History, Listing, Retry, Drop bool
	// Token goes into the forms.
	Token string
	// Now is when the page was made.
	Now string
}

// framed is a page.
type framed interface{ base() *frame }

func (f *frame) base() *frame { return f }

// render writes a page. It is made whole before the first byte is sent, so that a failure is not a torn page.
func (d *Dashboard) render(w http.ResponseWriter, r *http.Request, name string, page framed) {
	f := page.base()
	f.Metrics = d.cfg.Metrics != nil
	_, f.History = d.cfg.Queue.(queue.Historian)
	f.Listing = f.History
	_, f.Retry = d.cfg.Queue.(queue.Redriver)
	_, f.Drop = d.cfg.Queue.(queue.Dropper)
	f.Token = d.guard.token(w, r)
	f.Now = stamp(time.Now())
	var text bytes.Buffer
	if err := d.pages.ExecuteTemplate(&text, name, page); err != nil {
		d.log.ErrorContext(r.Context(), "page could not be made", "page", name, "err", err)
		http.Error(w, "this page could not be made; the log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(cmp.Or(f.Status, http.StatusOK))
	_, _ = text.WriteTo(w) // Whoever asked is gone if this fails.
}

// refusal is the page that says why there is no other.
type refusal struct {
	frame
	Text string
}

func (d *Dashboard) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	d.render(w, r, "refusal", &refusal{frame{Title: http.StatusText(status), Status: status}, text})
}

// plain is a text of a stranger as one line that looks like what it is: characters that do not show, or that turn the direction of writing, are spelled out.
func plain(text string) string {
	for _, r := range text {
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			return strconv.QuoteToGraphic(text)
		}
	}
	return text
}

// laneName is how a lane is shown.
func laneName(lane string) string {
	if lane == "" {
		return "(default)"
	}
	return lane
}

// count is a number with its digits in groups.
func count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// age is a length of time as people say it: its two largest units.
func age(d time.Duration) string {
	switch {
	case d <= 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(max(1, d.Milliseconds()), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + " s"
	case d < time.Hour:
		return units(d, unit{time.Minute, "min"}, unit{time.Second, "s"})
	case d < 24*time.Hour:
		return units(d, unit{time.Hour, "h"}, unit{time.Minute, "min"})
	}
	return units(d, unit{24 * time.Hour, "d"}, unit{time.Hour, "h"})
}

type unit struct {
	length time.Duration
	name   string
}

func units(d time.Duration, large, small unit) string {
	text := strconv.FormatInt(int64(d/large.length), 10) + " " + large.name
	if rest := d % large.length / small.length; rest > 0 {
		text += " " + strconv.FormatInt(int64(rest), 10) + " " + small.name
	}
	return text
}

// stamp is a time, to the second.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// eventKey is an event's identity as one word for links and forms, which would change line ends in it otherwise.
func eventKey(provider, id string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(provider)) + "." + base64.RawURLEncoding.EncodeToString([]byte(id))
}

func parseEventKey(key string) (provider, id string, ok bool) {
	first, second, found := strings.Cut(key, ".")
	p, err1 := base64.RawURLEncoding.DecodeString(first)
	i, err2 := base64.RawURLEncoding.DecodeString(second)
	return string(p), string(i), found && err1 == nil && err2 == nil && len(p) > 0
}
