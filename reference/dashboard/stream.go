package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// news is what the stream sends: every number by its key, with its tone.
type news struct {
	Shape string               `json:"shape"`
	Cells map[string][2]string `json:"cells"`
}

// streamTimeout is how long a reader may take to accept one message.
const streamTimeout = 10 * time.Second

// serveStream sends the numbers with every sample, as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html), until the reader leaves or
// the dashboard ends.
func (d *Dashboard) serveStream(w http.ResponseWriter, r *http.Request) {
	if !d.watch.enter() {
		http.Error(w, "too many follow the numbers already", http.StatusServiceUnavailable)
		return
	}
	defer d.watch.leave()
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep the messages back: https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering
	out := http.NewResponseController(w)
	// The server's time limits are for one request and its answer; this one does not end. The limit on reading would end its context.
	if err := out.SetReadDeadline(time.Time{}); err != nil {
		d.refuse(w, r, http.StatusInternalServerError, "This server cannot stream.")
		return
	}
	for {
		next := d.watch.next()
		if d.send(w, out) != nil {
			return // The reader is gone, or does not read.
		}
		select {
		case <-r.Context().Done():
			return
		case <-d.watch.ended:
			return
		case <-next:
		}
	}
}

func (d *Dashboard) send(w http.ResponseWriter, out *http.ResponseController) error {
	o := d.overview()
	n := news{Shape: o.Shape, Cells: map[string][2]string{o.Trouble.Key: {o.Trouble.Text, ""}}}
	add := func(cells []cell) {
		for _, c := range cells {
			n.Cells[c.Key] = [2]string{c.Text, c.Tone}
		}
	}
	add(o.Tiles)
	for _, rows := range [][]row{o.Lanes, o.Workers} {
		for _, r := range rows {
			add(r.Cells)
		}
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := out.SetWriteDeadline(time.Now().Add(streamTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "retry: 2000\nevent: numbers\ndata: %s\n\n", text); err != nil {
		return err
	}
	return out.Flush()
}
