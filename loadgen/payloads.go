package loadgen

import (
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
	attempts := 1
	if from.MaxBatch > 1 {
		attempts += len(from.Delays)
	}
	for i, e := range p.slot.events {
		if !wanted(e.Number) {
			continue
		}
		for attempt := range attempts {
			req.Reset()
			from.Render(req, provider.Delivery{Key: p.key, Events: p.slot.events, Attempt: attempt + 1})
			visit(e.Number, from.PayloadOf(req.Body, i))
		}
	}
}

// unread is books that nobody reads.
type unread struct{}

func (unread) Event(ledger.Event)       {}
func (unread) Delivery(ledger.Delivery) {}
func (unread) Attempt(ledger.Attempt)   {}
