package verdict

import (
	"math"
	"time"

	"floodproof/reports/ledger"
)

// event is what the judge remembers of one event: 24 bytes, because there may be a hundred million of them.
type event struct {
	// effect is when the last of its steps first took effect, in microseconds; it means something only with tookAny.
	effect int64
	// ack is 1 + the index of the attempt with the earliest due time that acked it, 0 if none did.
	ack      uint32
	resource uint32
	version  uint32
	provider uint8
	// flags has the event's lane in the bits that the flags leave.
	flags ledger.EventFlags
	marks eventMarks
}

// laneShift is where the lane begins in an event's flags.
const laneShift = 3

func (e *event) lane() uint8 { return uint8(e.flags >> laneShift) }

// eventMarks is what happened to an event.
type eventMarks uint16

const (
	introduced eventMarks = 1 << iota
	// genuine, duplicated and forged: such a delivery carries it.
	genuine
	duplicated
	forged
	// attempted: some attempt of a genuine or duplicate delivery was made.
	attempted
	// unanswered: such an attempt wrote a byte and got no answer in time.
	unanswered
	// cutOff: the provider would have tried again. refused: the answer ended the schedule. unheard: there was none, and that ended it.
	cutOff
	refused
	unheard
	// exhausted: the schedule had no further attempt.
	exhausted
	// tookBase and twiceBase stand for step 0; History.steps has the others. tookAny is any step.
	tookBase
	twiceBase
	tookAny
	// listedDead: the dead-letter list has an entry for it; provenDead: with the hash of what was sent.
	listedDead
	provenDead
)

func (e *event) has(m eventMarks) bool { return e.marks&m != 0 }

// counts reports whether this is an event of the run: a genuine delivery carried it.
func (e *event) counts() bool { return e.has(genuine) && e.flags&ledger.Phantom == 0 }

// delivery is what the judge remembers of one delivery.
type delivery struct {
	first uint32
	// count is how many events it carries, lastTry the highest attempt recorded, 0 without one.
	count, lastTry uint16
	class          ledger.Class
	provider       uint8
	// last is how attempt lastTry ended: result << 3 | then. ok: some attempt succeeded.
	last uint8
	ok   bool
}

func (d *delivery) result() ledger.Result { return ledger.Result(d.last >> 3) }
func (d *delivery) then() ledger.Then     { return ledger.Then(d.last & 7) }

// carries reports whether the delivery's answers say something about its events: forgeries do not, and a malformed one has none.
func (d *delivery) carries() bool {
	switch d.class {
	case ledger.Genuine, ledger.DuplicateSameID, ledger.DuplicateNewID:
		return true
	case ledger.Forged, ledger.Malformed:
		return false
	default:
		return false
	}
}

// span is a length of time of 0 to 2^31 + 2^35 microseconds (10 hours) in 32 bits: exact below 2^31 (36 minutes), in steps of 16 above, which is far
// below the three digits that a histogram keeps.
type span uint32

const (
	spanExact = 1 << 31
	spanStep  = 16
)

// spanOf is the span nearest to a number of microseconds.
func spanOf(us int64) span {
	switch {
	case us < 0:
		return 0
	case us < spanExact:
		return span(us)
	default:
		return span(min(spanExact+(us-spanExact)/spanStep, math.MaxUint32))
	}
}

func (s span) micros() int64 {
	if s < spanExact {
		return int64(s)
	}
	return spanExact + int64(s-spanExact)*spanStep
}

// attempt is what the judge remembers of one attempt, in 16 bytes. It is kept, not judged on the way, because a fault that excuses it may be
// recorded after it.
//
// head is from the highest bit: due time in microseconds (43 bits, 101 days), segment (8), provider (8), result (3), blocked (1), genuine (1).
type attempt struct {
	head uint64
	// wait is from due to start, total from due to done.
	wait, total span
}

const (
	genuineBit   = 1
	blockedBit   = 2
	resultShift  = 2
	resultMask   = 7
	providerBits = 5
	segmentBits  = 13
	dueBits      = 21
	maxDue       = 1<<(64-dueBits) - 1
)

// pack keeps an attempt. Times before the run or more than 101 days into it are cut to that range.
func pack(a *ledger.Attempt, d *delivery) attempt {
	due := min(max(micros(a.Due), 0), maxDue)
	head := uint64(due)<<dueBits | uint64(a.Segment)<<segmentBits | uint64(d.provider)<<providerBits | uint64(a.Result&resultMask)<<resultShift
	if a.Blocked {
		head |= blockedBit
	}
	if d.class == ledger.Genuine {
		head |= genuineBit
	}
	return attempt{head: head, wait: spanOf(micros(a.Start) - due), total: spanOf(micros(a.Done) - due)}
}

func (a *attempt) due() int64            { return int64(a.head >> dueBits) }
func (a *attempt) start() int64          { return a.due() + a.wait.micros() }
func (a *attempt) done() int64           { return a.due() + a.total.micros() }
func (a *attempt) segment() uint8        { return uint8(a.head >> segmentBits) }
func (a *attempt) provider() uint8       { return uint8(a.head >> providerBits) }
func (a *attempt) result() ledger.Result { return ledger.Result(a.head >> resultShift & resultMask) }
func (a *attempt) blocked() bool         { return a.head&blockedBit != 0 }
func (a *attempt) genuine() bool         { return a.head&genuineBit != 0 }

// service is from start to done.
func (a *attempt) service() int64 { return a.total.micros() - a.wait.micros() }

// failure says that an attempt, by its index, was unanswered or refused and carried an event.
type failure struct{ event, attempt uint32 }

// stepSet are the steps of an event beyond step 0, as bits.
type stepSet struct{ took, twice uint64 }

func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// seconds turns microseconds into the seconds of the report.
func seconds(us int64) float64 { return float64(us) / 1e6 }

// millis turns microseconds into the milliseconds of the report.
func millis(us int64) float64 { return float64(us) / 1e3 }
