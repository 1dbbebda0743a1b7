// Package vegeta writes a run as the results of the load tool vegeta, so that `vegeta report`, `vegeta plot` and whatever else reads its files work on a run
// of floodproof.
//
// Each attempt of the ledger is one result. Its time stamp is the instant at which the attempt was due, not that at which it was sent, so that what
// vegeta calls latency is the response time from the due time: a wait for a free slot or for a late generator is part of it, where vegeta's own attacks leave
// it out (https://github.com/tsenart/vegeta/issues/223).
//
//	floodproof report RUN --format vegeta-gob | vegeta report
//
// Note: a result has no place for what happened behind the answer. Whether an acknowledged event was lost or done twice is in the verdict alone.
package vegeta

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	lib "github.com/tsenart/vegeta/v12/lib"

	"floodproof/reports/ledger"
)

// Encoding is one of vegeta's file formats. The zero value is gob.
type Encoding uint8

const (
	// Gob is vegeta's own format, which `vegeta attack` writes.
	Gob Encoding = iota
	// JSON is one object a line, as `vegeta encode --to json` writes it.
	JSON
)

// encoder returns vegeta's own encoder, which fails with the writer.
func (e Encoding) encoder(w io.Writer) lib.Encoder {
	if e == JSON {
		return lib.NewJSONEncoder(w)
	}
	return lib.NewEncoder(w)
}

// Write writes the attempts of a ledger as vegeta's results, in the order in which they were due: vegeta's plot refuses results whose time stamps do not grow with their
// sequence numbers. The header is that of the same ledger. It keeps about fifty bytes of each attempt until the last is read.
//
// What can be read of a damaged ledger is written, and the error says where it stops; a ledger that was cut is no error.
//
// In each result, Attack is the scenario's name, Seq counts the attempts as they were due, Error says why an attempt failed (in vegeta's own way where there was an answer:
// "503 Service Unavailable"). Sizes and the answer's header and body are not in a ledger, so that they are empty. vegeta takes every status from 200 to 399 for
// success, whatever the provider makes of it: a refused forgery is an error to it.
func Write(w io.Writer, in io.Reader, h *ledger.Header, encoding Encoding) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	x := &writer{header: h, encode: encoding.encoder(buffered), open: map[uint32]uint8{}}
	for _, p := range h.Providers {
		x.urls = append(x.urls, address(h.Target, p.Name))
	}
	_, _, err := ledger.Read(in, ledger.Visitor{Delivery: x.delivery, Attempt: x.attempt})
	if errors.Is(err, ledger.ErrNoEnd) {
		err = nil
	}
	x.results()
	if err := errors.Join(err, x.err, buffered.Flush()); err != nil {
		return fmt.Errorf("write results for vegeta: %w", err)
	}
	return nil
}

// address is where a provider's deliveries went, as far as the ledger knows: the whole URL of a target that is one, else the path.
func address(target ledger.Target, provider string) string {
	path := "/webhooks/" + provider
	if target.Kind != "url" || target.Name == "" {
		return path
	}
	if strings.Contains(target.Name, "{provider}") {
		return strings.ReplaceAll(target.Name, "{provider}", provider)
	}
	return strings.TrimSuffix(target.Name, "/") + path
}

// writer turns records into results. Its first error stays.
type writer struct {
	header *ledger.Header
	// urls are by the providers of the header.
	urls   []string
	encode lib.Encoder
	// open are the deliveries that may have another attempt, with their provider.
	open map[uint32]uint8
	// read are the attempts in the order of the file, that in which they ended.
	read []row
	err  error
}

// row is what a result needs to know of an attempt.
type row struct {
	due, latency time.Duration
	err          string
	status       uint16
	provider     uint8
}

// delivery remembers whose a delivery is until its last attempt.
func (x *writer) delivery(d *ledger.Delivery) { x.open[d.Number] = d.Provider }

// attempt writes one attempt.
func (x *writer) attempt(a *ledger.Attempt) {
	if x.err != nil {
		return
	}
	from, known := x.open[a.Delivery]
	if !known || int(from) >= len(x.urls) {
		x.err = fmt.Errorf("attempt %d of delivery %d has no provider; floodproof judge tells what else is wrong with this ledger", a.Try, a.Delivery)
		return
	}
	if a.Then != ledger.Retry {
		delete(x.open, a.Delivery)
	}
	x.read = append(x.read, row{a.Due, a.Done - a.Due, why(a, x.header.Providers[from]), a.Status, from})
}

// results writes what was read.
func (x *writer) results() {
	slices.SortStableFunc(x.read, func(a, b row) int { return cmp.Compare(a.due, b.due) })
	for i := range x.read {
		if x.err != nil {
			return
		}
		r := &x.read[i]
		x.err = x.encode(&lib.Result{
			Attack: x.header.Scenario, Seq: uint64(i), Code: r.status, Timestamp: x.header.StartedAt.Add(r.due), Latency: r.latency,
			Error: r.err, Method: http.MethodPost, URL: x.urls[r.provider],
		})
	}
}

// why is what vegeta calls the error of an attempt, empty for one that succeeded.
func why(a *ledger.Attempt, from ledger.Provider) string {
	switch a.Result {
	case ledger.OK:
		return ""
	case ledger.Refused:
		return strings.TrimSpace(strconv.Itoa(int(a.Status)) + " " + http.StatusText(int(a.Status)))
	case ledger.Unconnected:
		return "unconnected: no byte of the request could be sent"
	case ledger.Unanswered:
		if from.Timeout > 0 && a.Done-a.Start >= from.Timeout {
			return fmt.Sprintf("unanswered: no answer within the %v that %s waits", from.Timeout, from.Name)
		}
		return "unanswered: the request was sent, and the connection ended without an answer"
	default:
		return fmt.Sprintf("result %d, which this program does not know", a.Result)
	}
}
