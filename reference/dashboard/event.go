package dashboard

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// find is the page that asks for an event.
type find struct {
	frame
	Provider, ID, Text string
}

// eventPage is one event's history.
type eventPage struct {
	frame
	Key, State, Tone string
	Facts            []fact
	History          []moment
	Size             string
	// Dead: it can be given back.
	Dead bool
	// Payload is what was received, where it was asked for; Shown says that it was, and Cut how much of it is left out.
	Payload string
	Shown   bool
	Cut     string
}

type fact struct{ Name, Value string }

// moment is something that happened to an event.
type moment struct{ At, What, Why string }

// maxShown is how much of a payload is shown, in bytes.
const maxShown = 256 << 10

func (d *Dashboard) serveEvent(w http.ResponseWriter, r *http.Request) {
	historian, ok := d.cfg.Queue.(Historian)
	if !ok {
		d.refuse(w, r, http.StatusNotImplemented, "This queue does not know what became of an event.")
		return
	}
	query := r.URL.Query()
	page := &find{frame: frame{Title: "Find an event"}, Provider: strings.TrimSpace(query.Get("provider")), ID: strings.TrimSpace(query.Get("id"))}
	provider, id := page.Provider, page.ID
	if key := query.Get("key"); key != "" {
		if provider, id, ok = parseEventKey(key); !ok {
			d.refuse(w, r, http.StatusBadRequest, "The link to the event is not whole.")
			return
		}
	}
	if provider == "" || id == "" {
		d.render(w, r, "find", page)
		return
	}
	e, err := historian.Event(r.Context(), provider, id)
	switch {
	case errors.Is(err, ErrUnknownEvent):
		page.Provider, page.ID, page.Text, page.Status = provider, id, "No event of this provider has this id here.", http.StatusNotFound
		d.render(w, r, "find", page)
		return
	case err != nil:
		d.log.WarnContext(r.Context(), "event could not be read", "provider", provider, "event", id, "err", err)
		d.refuse(w, r, http.StatusBadGateway, "The queue does not show this event now; the log says why.")
		return
	}
	shown := query.Get("payload") == "show"
	if shown {
		d.log.InfoContext(r.Context(), "payload was shown", "provider", provider, "event", id, "remote", r.RemoteAddr)
	}
	d.render(w, r, "event", newEventPage(e, shown))
}

func newEventPage(e Event, shown bool) *eventPage {
	p := &eventPage{
		frame: frame{Title: "Event " + plain(e.EventID)}, Key: eventKey(e.Provider, e.EventID), State: e.State, Tone: tones()[e.State],
		Size: count(int64(len(e.Payload))) + " bytes", Dead: e.State == "failed", Shown: shown,
		Facts: []fact{
			{"provider", e.Provider}, {"id", e.EventID}, {"type", e.Type}, {"lane", laneName(e.Lane)}, {"resource", e.Resource},
			{"version", strconv.FormatInt(e.Version, 10)}, {"delivery", e.DeliveryID}, {"received", stamp(e.ReceivedAt)}, {"leases", count(int64(e.Leases))},
		},
		History: history(e),
	}
	if shown {
		p.Payload, p.Cut = payload(e.Payload)
	}
	return p
}

func tones() map[string]string {
	return map[string]string{"done": "good", "failed": "bad", "processing": "busy"}
}

// history is what is known to have happened, oldest first, and what is next.
func history(e Event) []moment {
	all := []moment{{stamp(e.ReceivedAt), "received", ""}}
	for _, a := range e.Attempts {
		what := fmt.Sprintf("attempt %d failed", a.Number)
		if a.Number == 0 {
			what = "refused on arrival"
		}
		all = append(all, moment{stamp(a.At), what, a.Reason})
	}
	since := stamp(e.Since)
	switch e.State {
	case "done":
		return append(all, moment{since, "done", ""})
	case "failed":
		return append(all, moment{since, "dead letter", ""})
	case "processing":
		return append(all, moment{since, fmt.Sprintf("lease %d ends", e.Leases), "a worker has it"})
	case "pending":
		why := "it waits for a worker"
		if wait := time.Until(e.Since); wait > 0 {
			why = "it waits " + age(wait)
		}
		return append(all, moment{since, "due", why})
	}
	return all
}

// payload is a payload as text, as it came where it is text, else as a dump.
func payload(raw []byte) (text, cut string) {
	if len(raw) > maxShown {
		cut = count(int64(len(raw)-maxShown)) + " bytes are left out"
		raw = raw[:maxShown]
		for i := 0; i < utf8.UTFMax && len(raw) > 0 && !utf8.Valid(raw); i++ { // a character may have been cut in two
			raw = raw[:len(raw)-1]
		}
	}
	if utf8.Valid(raw) {
		return strings.Map(visible, string(raw)), cut
	}
	return hex.Dump(raw), cut
}

// visible replaces what would not show, or would turn the direction of what follows.
func visible(r rune) rune {
	if r == '\n' || r == '\r' || r == '\t' || unicode.IsGraphic(r) {
		return r
	}
	return unicode.ReplacementChar
}
