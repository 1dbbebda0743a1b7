package dashboard

import (
	"net/http"
	"slices"
	"time"

	"floodproof/reference/queue"
)

// hand is the page of what is leased, that longest in hand first: the place to look for handlers that do not end, and for workers that are gone.
type hand struct {
	frame
	Total  string
	Leases []held
	More   bool
}

// held is one event that is leased, or was until its lease lapsed.
type held struct {
	Provider, ID, Type, Lane, Link string
	Held, Tone, Attempt, Lease     string
}

// maxHeld is how many are shown.
const maxHeld = 100

func (d *Dashboard) serveHand(w http.ResponseWriter, r *http.Request) {
	historian, ok := d.cfg.Queue.(queue.Historian)
	if !ok {
		d.refuse(w, r, http.StatusNotImplemented, "This queue does not know what is in hand.")
		return
	}
	var all []queue.Event
	err := historian.Events(r.Context(), queue.EventFilter{State: queue.StateProcessing}, func(e queue.Event) error {
		if all = append(all, e); len(all) == maxScanned {
			return errEnough
		}
		return nil
	})
	if err != nil && len(all) < maxScanned {
		d.log.WarnContext(r.Context(), "events could not be read", "err", err)
		d.refuse(w, r, http.StatusBadGateway, "The queue does not show its events now; the log says why.")
		return
	}
	slices.SortFunc(all, func(a, b queue.Event) int { return a.Since.Compare(b.Since) })
	page := &hand{frame: frame{Title: "In hand"}, Total: count(int64(len(all))), More: len(all) > maxHeld}
	for _, e := range all[:min(len(all), maxHeld)] {
		page.Leases = append(page.Leases, newHeld(e))
	}
	d.render(w, r, "hand", page)
}

func newHeld(e queue.Event) held {
	since := time.Since(e.Since)
	h := held{
		Provider: e.Provider, ID: e.EventID, Type: e.Type, Lane: laneName(e.Lane), Link: "/event?key=" + eventKey(e.Provider, e.EventID),
		Held: age(since), Tone: stuck(since), Attempt: count(int64(e.Attempt)),
	}
	if left := time.Until(e.Deadline); left > 0 {
		h.Lease = "ends in " + age(left)
	} else {
		h.Lease, h.Tone = "lapsed "+age(-left)+" ago", "warn"
	}
	return h
}
