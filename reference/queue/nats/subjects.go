package nats

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// The subjects of a queue, all in one stream. HASH is of the provider and the event id, LANE a token made of the lane's name.
//
//	fp.NS.q.HASH.LANE.0   the job, for ever; it is also what is delivered to say that the job is ready
//	fp.NS.q.HASH.LANE.1   says again that the job is ready, after it was given back
//	fp.NS.q.HASH.-.0      a job that was dead on arrival, which no consumer wants
//	fp.NS.s.HASH          the job's state; none means that it was never leased
//	fp.NS.d.HASH          the dead letter; an empty one was redriven, replayed or dropped
//	fp.NS.r.HASH          what is known of the updates of one resource, where they are debounced; HASH is of the provider and the resource
//	fp.NS.l.HASH          what a shared limit was left in; HASH is of its name
//	fp.NS.m               an empty message that is always there, where there are replicas
//	fp.NS.c.X.WRITER      what one writer has done to the counts; X is the first letter of its name
//
// The hash stands before the lane, so that one look along a prefix finds the event in whatever lane it is.
type subjects struct{ prefix string }

func newSubjects(namespace string) subjects { return subjects{prefix: "fp." + namespace + "."} }

func (s subjects) all() string                    { return s.prefix + ">" }
func (s subjects) job(hash, lane string) string   { return s.prefix + "q." + hash + "." + lane + ".0" }
func (s subjects) ready(hash, lane string) string { return s.prefix + "q." + hash + "." + lane + ".1" }
func (s subjects) anyJob(hash string) string      { return s.prefix + "q." + hash + ".*.0" }
func (s subjects) event(hash string) string       { return s.prefix + "q." + hash + ".>" }
func (s subjects) lane(lane string) string        { return s.prefix + "q.*." + lane + ".*" }
func (s subjects) state(hash string) string       { return s.prefix + "s." + hash }
func (s subjects) dead(hash string) string        { return s.prefix + "d." + hash }
func (s subjects) row(hash string) string         { return s.prefix + "r." + hash }
func (s subjects) limit(hash string) string       { return s.prefix + "l." + hash }
func (s subjects) mark() string                   { return s.prefix + "m" }
func (s subjects) allJobs() string                { return s.prefix + "q.*.*.0" }
func (s subjects) counts(writer string) string    { return s.prefix + "c." + writer[:1] + "." + writer }
func (s subjects) allCounts(letter string) string { return s.prefix + "c." + letter + ".*" }

// split takes a subject apart: what stands there, and of which event (or writer).
func (s subjects) split(subject string) (class, hash string, again bool) {
	class, rest, _ := strings.Cut(strings.TrimPrefix(subject, s.prefix), ".")
	hash, tail, _ := strings.Cut(rest, ".")
	return class, hash, strings.HasSuffix(tail, ".1")
}

// hashOf is 128 bits of SHA-256, in the alphabet of subjects: two events that share it would have to be sought for longer than anybody can.
func hashOf(provider, eventID string) string {
	h := sha256.New()
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(provider)))
	h.Write(length[:])
	h.Write([]byte(provider))
	h.Write([]byte(eventID))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}

// noLane is the lane token of what must not be delivered.
const noLane = "-"

// laneToken makes a token of any lane name; long names are hashed.
func laneToken(lane string) string {
	if len(lane) <= 60 {
		return "L" + base64.RawURLEncoding.EncodeToString([]byte(lane))
	}
	return "H" + hashOf("", lane)
}
