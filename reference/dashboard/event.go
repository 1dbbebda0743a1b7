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

	"floodproof/reference/queue"
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
	historian, ok := d.cfg.Queue.(queue.Historian)
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
	case errors.Is(err, queue.ErrUnknownEvent):
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

func newEventPage(e queue.Event, shown bool) *eventPage {
	p := &eventPage{
		frame: frame{Title: "Event " + plain(e.EventID)}, Key: eventKey(e.Provider, e.EventID), State: string(e.State), Tone: tones()[e.State],
		Size: count(int64(len(e.Payload))) + " bytes", Dead: e.State == queue.StateFailed, Shown: shown,
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

func tones() map[queue.State]string {
	return map[queue.State]string{queue.StateDone: "good", queue.StateFailed: "bad", queue.StateProcessing: "busy"}
}

// history is what is known to have happened, oldest first, and what is next.
func history(e queue.Event) []moment {
	all := []moment{{stamp(e.ReceivedAt), "received", ""}}
	acts := e.Acts
	for _, a := range e.Attempts {
		for len(acts) > 0 && acts[0].At.Before(a.At) {
			all, acts = append(all, newAct(acts[0])), acts[1:]
		}
		what := fmt.Sprintf("attempt %d failed", a.Number)
		if a.Number == 0 {
			what = "refused on arrival"
		}
		all = append(all, moment{stamp(a.At), what, a.Reason})
	}
	for _, a := range acts {
		all = append(all, newAct(a))
	}
	since := stamp(e.Since)
	switch e.State {
	case queue.StateDone:
		return append(all, moment{since, "done", ""})
	case queue.StateFailed:
		return append(all, moment{since, "dead letter", ""})
	case queue.StateProcessing:
		return append(all, moment{since, fmt.Sprintf("attempt %d began", e.Leases), leaseEnds(e.Deadline)})
	case queue.StateDropped:
		return all // which the last act says
	case queue.StatePending:
		why := "it waits for a worker"
		if wait := time.Until(e.Since); wait > 0 {
			why = "it waits " + age(wait)
		}
		return append(all, moment{since, "due", why})
	}
	return all
}

// newAct is what somebody did with an event.
func newAct(a queue.Act) moment {
	if a.What == queue.ActDrop {
		return moment{stamp(a.At), a.What, "by hand"}
	}
	return moment{stamp(a.At), a.What, "by hand; attempts start at zero again"}
}

// leaseEnds says of a lease that it is in force, or that it lapsed.
func leaseEnds(deadline time.Time) string {
	left := time.Until(deadline)
	if left <= 0 {
		return "its lease lapsed " + age(-left) + " ago: it comes again by itself"
	}
	return "a worker has it; its lease ends in " + age(left) + " if it is not prolonged"
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
