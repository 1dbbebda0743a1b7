package verdict

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"floodproof/reports/ledger"
)

// maxName bounds an id in a report; ids are hostile input.
const maxName = 256

// source is where a ledger is read from, and whether it can be read again.
type source struct {
	seeker io.ReadSeeker
	from   int64
}

func sourceOf(r io.Reader) source {
	s, ok := r.(io.ReadSeeker)
	if !ok {
		return source{}
	}
	from, err := s.Seek(0, io.SeekCurrent)
	if err != nil { // a pipe that looks like a file
		return source{}
	}
	return source{seeker: s, from: from}
}

func (s source) rewinds() bool { return s.seeker != nil }

// names finds the ids of the few events that a verdict names.
//
// Note: a million ids take 50 MB. They are read a second time from a file, and only when something went wrong; only a
// ledger that comes through a pipe has them kept in memory.
type names struct {
	keeping bool
	kept    paged[string]
	found   map[uint32]string
}

// keep remembers the id of an event that was introduced, if the ledger cannot be read again.
func (n *names) keep(e *ledger.Event) {
	if n.keeping {
		*n.kept.at(e.Number) = strings.Clone(e.ID)
	}
}

// resolve looks up the ids of the wanted events.
func (n *names) resolve(src source, wanted map[uint32]bool) {
	n.found = make(map[uint32]string, len(wanted))
	for number := range wanted {
		if slot := n.kept.get(number); slot != nil {
			n.found[number] = *slot
		}
	}
	n.kept = paged[string]{}
	if len(wanted) == 0 || !src.rewinds() {
		return
	}
	if _, err := src.seeker.Seek(src.from, io.SeekStart); err != nil {
		return // the numbers then stand for the ids
	}
	// The same file was read a moment ago: its error is known and judged.
	_, _, _ = ledger.Read(src.seeker, ledger.Visitor{Event: func(e *ledger.Event) {
		if _, known := n.found[e.Number]; wanted[e.Number] && !known {
			n.found[e.Number] = strings.Clone(e.ID)
		}
	}})
}

// of is the id of an event, or its number if the ledger did not give it.
func (n *names) of(number uint32) string {
	if id := n.found[number]; id != "" {
		return printable(id)
	}
	return fmt.Sprintf("event %d", number)
}

// printable makes a string from outside safe to show in a terminal: control characters become escapes, and it is cut at maxName bytes.
func printable(s string) string {
	if len(s) > maxName {
		s = s[:maxName] + "..."
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
