package loadgen

import (
	"bytes"
	"net/http"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

// Payloads renders again what a run of this traffic sent for the events that are wanted, in order of their first delivery: bytes that a dead letter must show. An
// event whose bytes change from attempt to attempt (HubSpot counts attempts in the body) is visited once for each attempt of its schedule. The
// payload is valid only during the call.
//
// Nothing was kept for this while the load ran: the day is planned once more.
func (t *Traffic) Payloads(wanted func(number uint32) bool, visit func(number uint32, payload []byte)) error {
	s, err := newStream(t, unread{})
	if err != nil {
		return err
	}
	req := provider.Request{Header: make(http.Header)}
	for {
		if _, ok := s.frontier(); !ok {
			return nil
		}
		for _, p := range s.advance() {
			if p.class == ledger.Genuine {
				p.payloads(&req, wanted, visit)
			}
		}
	}
}

// payloads visits the wanted events of one delivery.
func (p *plan) payloads(req *provider.Request, wanted func(uint32) bool, visit func(uint32, []byte)) {
	from := p.slot.role.Provider
	var first []byte
	for i, e := range p.slot.events {
		if !wanted(e.Number) {
			continue
		}
		for attempt := range 1 + len(from.Delays) {
			req.Reset()
			from.Render(req, provider.Delivery{Key: p.key, Events: p.slot.events, Attempt: attempt + 1})
			// A signature inside of what is queued (Adyen) is part of it. It holds no time, or no two attempts would be alike.
			from.Sign(req, provider.Signing{Secrets: p.slot.role.Secrets, URL: p.slot.role.URL, Now: e.At})
			payload := from.PayloadOf(req.Body, i)
			if attempt == 1 && bytes.Equal(payload, first) {
				break // The number of the attempt is not in it.
			}
			if attempt == 0 {
				first = append(first[:0], payload...)
			}
			visit(e.Number, payload)
		}
		if p.slot.role.fallback != nil {
			p.fallbackPayloads(req, i, visit)
		}
	}
}

// fallbackPayloads visits what the second URL may be sent of an event: after an answer, and after silence.
func (p *plan) fallbackPayloads(req *provider.Request, i int, visit func(uint32, []byte)) {
	second, e := *p, p.slot.events[i]
	second.fallback = true
	for _, last := range []provider.Answer{{Attempt: 1, Connected: true, Status: http.StatusInternalServerError}, {Attempt: 1}} {
		req.Reset()
		second.write(req, 1, last, e.At)
		visit(e.Number, p.slot.role.Provider.PayloadOf(req.Body, i))
	}
}

// unread is books that nobody reads.
type unread struct{}

func (unread) Event(ledger.Event)       {}
func (unread) Delivery(ledger.Delivery) {}
func (unread) Attempt(ledger.Attempt)   {}
