package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"floodproof/reference/queue"
	"floodproof/reports/wording"
)

// letterJSON is a dead letter as one line of JSON. A payload is text where it is valid UTF-8, else base64, byte by byte as it was received; nothing else of a job is left out, so that a
// letter that was dropped can be made again from its line.
type letterJSON struct {
	Provider   string    `json:"provider"`
	EventID    string    `json:"event_id"`
	DeliveryID string    `json:"delivery_id"`
	Type       string    `json:"type"`
	Resource   string    `json:"resource"`
	Version    int64     `json:"version"`
	Lane       string    `json:"lane"`
	ReceivedAt time.Time `json:"received_at"`
	Reason     string    `json:"reason"`
	Attempts   int       `json:"attempts"`
	DeadAt     time.Time `json:"dead_at"`
	Bytes      int       `json:"bytes"`
	History    []moment  `json:"history,omitempty"`
	Payload    *string   `json:"payload,omitempty"`
	Base64     []byte    `json:"payload_base64,omitempty"`
}

// moment is something that happened to an event.
type moment struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
	// Attempt counts all leases of the event from 1.
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

func newLetterJSON(l *queue.DeadLetter) letterJSON {
	return letterJSON{
		Provider: l.Provider, EventID: l.EventID, DeliveryID: l.DeliveryID, Type: l.Type, Resource: l.Resource, Version: l.Version, Lane: l.Lane,
		ReceivedAt: l.ReceivedAt.UTC(), Reason: l.Reason, Attempts: l.Attempts, DeadAt: l.At.UTC(), Bytes: len(l.Payload),
	}
}

func (j *letterJSON) setPayload(raw []byte) {
	if utf8.Valid(raw) {
		text := string(raw)
		j.Payload = &text
		return
	}
	j.Base64 = raw
}

// line writes it as one line.
func (j *letterJSON) line(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(j)
}

// history is what happened to an event, oldest first.
func history(e *queue.Event) []moment {
	all := []moment{{At: e.ReceivedAt.UTC(), What: "received"}}
	acts := e.Acts
	for _, a := range e.Attempts {
		for len(acts) > 0 && acts[0].At.Before(a.At) {
			all, acts = append(all, moment{At: acts[0].At.UTC(), What: acts[0].What}), acts[1:]
		}
		what := "failed"
		if a.Number == 0 {
			what = "refused on arrival"
		}
		all = append(all, moment{At: a.At.UTC(), What: what, Attempt: a.Number, Reason: a.Reason})
	}
	for _, a := range acts {
		all = append(all, moment{At: a.At.UTC(), What: a.What})
	}
	return all
}

// letterTable writes letters as lines of a table, or, where those would not fit, as some short lines each.
type letterTable struct {
	out   *tabwriter.Writer
	lines int
	// narrow is the width of a terminal that is too narrow for a table, else 0.
	narrow int
}

// tableWidth is how wide a terminal has to be for the table: the ids of most providers, and enough of a reason.
const tableWidth = 150

// flushLines is how many lines share their widths: a list may be long, and must not be held.
const flushLines = 200

// newLetterTable makes one for a terminal of some width, or, with 0, for what is no terminal: there each letter is one line, whatever its length.
func newLetterTable(w io.Writer, width int) *letterTable {
	t := &letterTable{out: tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	if width > 0 && width < tableWidth {
		t.narrow = width
	}
	return t
}

// terminalWidth is how wide the terminal is that a writer writes to, 0 if it is none.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 40 {
		return helpWidth
	}
	return width
}

// addNarrow writes a letter as some lines.
func (t *letterTable) addNarrow(l *queue.DeadLetter) error {
	about := fmt.Sprintf("%s, %s, lane %s, %s", l.At.UTC().Format(time.RFC3339), printable(l.Type), laneTitle(l.Lane), wording.Plural(l.Attempts, "attempt"))
	_, _ = fmt.Fprintf(t.out, "%s/%s\n  %s  %s", printable(l.Provider), printable(l.EventID), wrap(about, 2, t.narrow), wrap(shorten(printable(l.Reason)), 2, t.narrow)) // its error is that of Flush
	return t.out.Flush()
}

func (t *letterTable) add(l *queue.DeadLetter) error {
	if t.narrow > 0 {
		return t.addNarrow(l)
	}
	if t.lines == 0 {
		_, _ = fmt.Fprintln(t.out, "GIVEN UP\tEVENT\tTYPE\tLANE\tATTEMPTS\tREASON") // its error is that of Flush
	}
	t.lines++
	_, _ = fmt.Fprintf(t.out, "%s\t%s/%s\t%s\t%s\t%d\t%s\n", l.At.UTC().Format(time.RFC3339), printable(l.Provider), printable(l.EventID), printable(l.Type),
		laneTitle(l.Lane), l.Attempts, shorten(printable(l.Reason)))
	if t.lines%flushLines == 0 {
		return t.out.Flush()
	}
	return nil
}

func laneTitle(lane string) string {
	if lane == "" {
		return "(default)"
	}
	return printable(lane)
}

// maxReasonShown is how much of a reason a table shows; all of it is shown by `dlq show`.
const maxReasonShown = 80

func shorten(text string) string {
	if utf8.RuneCountInString(text) <= maxReasonShown {
		return text
	}
	return string([]rune(text)[:maxReasonShown-1]) + "…"
}

// printable is a text of a stranger as one line for a terminal. What does not show is spelled out: control characters move the cursor and more, and others turn the direction of writing.
func printable(text string) string {
	for _, r := range text {
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			return strconv.QuoteToGraphic(text)
		}
	}
	return text
}

// printableBlock is the same for a text of many lines.
func printableBlock(raw []byte) string {
	var b strings.Builder
	for len(raw) > 0 {
		r, size := utf8.DecodeRune(raw)
		switch {
		case r == utf8.RuneError && size == 1:
			_, _ = fmt.Fprintf(&b, `\x%02x`, raw[0])
		case r == '\n' || r == '\t' || unicode.IsGraphic(r):
			_, _ = b.WriteRune(r)
		default:
			_, _ = b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
		raw = raw[size:]
	}
	return b.String()
}
