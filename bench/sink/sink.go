// Package sink is the recording downstream: the place where a pipeline's work shows. What arrives here, and nothing that a pipeline says about itself, is
// the evidence of an effect. It is the misbehaving downstream too.
//
// POST {base}/effects/{event_id}[/{step}] is an act, PUT an upsert, GET a look. The contract is DESIGN section 9.
package sink

import (
	"math/rand/v2"
	"time"

	"floodproof/reports/ledger"
)

// Config is what a sink needs. All fields must be set unless they say otherwise.
type Config struct {
	// Token is the random path segment that keeps other runs out.
	Token string
	// Start is the instant that the ledger's offsets count from.
	Start time.Time
	// Lookup finds the number and the flags of an event by its canonical id.
	Lookup func(id string) (number uint32, flags ledger.EventFlags, ok bool)
	// Record writes a call down; it is called once per call, in the order of the effects, and must not block for long.
	Record func(ledger.Call)
	// Steps are the names behind ledger.Call.Step; Steps[0] is "".
	Steps []string
	// Rand chooses which calls a misbehaviour touches. The sink owns it.
	Rand *rand.Rand
	// KeysOff ignores idempotency keys, as SMTP would.
	KeysOff bool
}
