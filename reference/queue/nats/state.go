package nats

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"floodproof/reference/queue"
)

type kind byte

// The states of a job that was leased at least once, or that is debounced. A job without a state waits since it was stored.
const (
	waiting kind = iota + 1
	leased
	done
	dead
	dropped
)

// state is the last thing that happened to a job, and what is kept of all before. Each is a message on the job's subject, stored under the condition that the one before it is still
// the last, so that of two who want to change it one fails. Its slices are never changed in place: states that follow each other share them.
type state struct {
	kind kind
	// attempt counts the leases since it was last begun anew, leases all.
	attempt, leases int
	// at is when a waiting job is due, when a lease ends, and when a job was settled; since is when it was leased: the server's clock in microseconds.
	at, since int64
	// token is that of the lease, 0 for the sequence of this very message.
	token uint64
	// carrier is the sequence of the message whose delivery, unacknowledged, brings the job again; 0 is the message after this one.
	carrier uint64
	reason  string
	// row is the hash of the row that it belongs to, "" if it is not debounced.
	row string
	// steps are the finished ones.
	steps []string
	// attempts are the newest of those that ended without success, acts the newest of what people did with it.
	attempts []attempt
	acts     []act

	// seq is the sequence of the message. It is not stored in it.
	seq uint64
}

// attempt is how a lease ended without success.
type attempt struct {
	number int
	at     int64
	reason string
}

// act is what somebody did with an event by hand: one of acts.
type act struct {
	what   byte
	at     int64
	leases int
}

// acts are the names of what stands in a state as the number.
func acts() []string { return []string{queue.ActRedrive, queue.ActReplay, queue.ActDrop} }

// The bounds of what a state keeps, so that it fits the smallest message that a queue can be opened with, whatever a handler says and however often it fails.
const (
	maxAttempts      = 256
	maxAttemptsBytes = 8 << 10 // of reasons; those of the oldest attempts are left out
	maxSteps         = 8 << 10 // bytes
	maxActs          = 32
)

// noted is the attempts with one more, that has just ended.
func (s *state) noted(at int64, reason string) []attempt {
	all := append(slices.Clip(s.attempts), attempt{number: s.leases, at: at, reason: reason})
	all = all[max(0, len(all)-maxAttempts):]
	bytes := 0
	for i := len(all) - 1; i >= 0; i-- {
		if bytes += len(all[i].reason); bytes > maxAttemptsBytes && i < len(all)-1 {
			all[i].reason = ""
		}
	}
	return all
}

// lapsed is the reason of an attempt whose worker vanished.
const lapsed = "its lease lapsed"

// granted is the state of a job that is leased for a time; carrier brings it again.
func (s state) granted(now int64, d time.Duration, carrier uint64) state {
	if s.kind == leased {
		s.attempts = s.noted(s.at, lapsed)
	}
	s.kind, s.at, s.since, s.token, s.carrier, s.reason = leased, now+d.Microseconds(), now, 0, carrier, ""
	s.attempt++
	s.leases++
	return s
}

// settled is the state after a lease.
func (s state) settled(now int64, outcome queue.Outcome) state {
	s.at, s.reason = now, clip(outcome.Reason())
	switch {
	case outcome.IsDone():
		s.kind = done
		return s
	case outcome.IsDead():
		s.kind = dead
	default:
		s.kind, s.at = waiting, now+upMicros(outcome.After())
	}
	s.attempts = s.noted(now, s.reason)
	return s
}

// requeued is the state of a job that stands at the end of the line again.
func (s state) requeued() state {
	if s.kind == leased {
		s.attempts = s.noted(s.at, lapsed)
	}
	s.kind, s.carrier = waiting, 0
	return s
}

// ungiven is the state of a job whose lease nobody got: as before it, but for the token.
func (s state) ungiven(now int64) state {
	s.kind, s.at = waiting, now
	s.attempt--
	s.leases--
	return s
}

// retired is the state of a job that a newer one answers for.
func (s state) retired(now int64, why string) state {
	s.kind, s.at, s.reason = done, now, "superseded: "+why
	s.attempts = s.noted(now, s.reason)
	return s
}

// acted is the state with a note of what somebody did.
func (s state) acted(now int64, what string) state {
	one := act{what: byte(slices.Index(acts(), what)), at: now, leases: s.leases}
	s.acts = append(slices.Clip(s.acts), one)
	s.acts = s.acts[max(0, len(s.acts)-maxActs):]
	return s
}

// anew is the state of a job that is due at once, with its attempts counted from zero.
func (s state) anew(now int64) state {
	s.kind, s.at, s.attempt, s.reason = waiting, now, 0, ""
	return s
}

func (s *state) encode() []byte {
	b := append(make([]byte, 0, 80+len(s.reason)), stateFormat, byte(s.kind))
	b = binary.AppendUvarint(b, uint64(s.attempt))
	b = binary.AppendVarint(b, s.at)
	b = binary.AppendUvarint(b, s.token)
	b = binary.AppendUvarint(b, s.carrier)
	b = appendText(b, s.reason)
	b = binary.AppendUvarint(b, uint64(s.leases))
	b = binary.AppendVarint(b, s.since)
	b = appendText(b, s.row)
	b = binary.AppendUvarint(b, uint64(len(s.steps)))
	for _, step := range s.steps {
		b = appendText(b, step)
	}
	b = binary.AppendUvarint(b, uint64(len(s.attempts)))
	for _, a := range s.attempts {
		b = binary.AppendUvarint(b, uint64(a.number))
		b = binary.AppendVarint(b, a.at)
		b = appendText(b, a.reason)
	}
	b = binary.AppendUvarint(b, uint64(len(s.acts)))
	for _, a := range s.acts {
		b = append(b, a.what)
		b = binary.AppendVarint(b, a.at)
		b = binary.AppendUvarint(b, uint64(a.leases))
	}
	return b
}

// decodeState reads the state in the message with that sequence, and fills in what is relative to it.
func decodeState(b []byte, seq uint64) (state, error) {
	r := reader{rest: b}
	format := r.byte()
	s := state{kind: kind(r.byte()), attempt: int(r.uvarint()), at: r.varint(), token: r.uvarint(), carrier: r.uvarint(), reason: r.text(), seq: seq}
	s.leases = s.attempt
	if format > 1 {
		s.leases, s.since, s.row = int(r.uvarint()), r.varint(), r.text()
		for range r.count() {
			s.steps = append(s.steps, r.text())
		}
		for range r.count() {
			s.attempts = append(s.attempts, attempt{number: int(r.uvarint()), at: r.varint(), reason: r.text()})
		}
		for range r.count() {
			s.acts = append(s.acts, act{what: r.byte(), at: r.varint(), leases: int(r.uvarint())})
		}
	}
	switch {
	case r.short:
		return state{}, fmt.Errorf("%w: the state ends early", errDamaged)
	case format < 1 || format > stateFormat:
		return state{}, fmt.Errorf("state has format %d and this program knows %d: use the newer program", format, stateFormat)
	}
	if s.token == 0 {
		s.token = seq
	}
	if s.carrier == 0 {
		s.carrier = seq + 1
	}
	return s, nil
}
