package verdict_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"floodproof/reports/ledger"
	"floodproof/reports/verdict"
)

// FuzzJudge: no bytes make the judge panic, and none that are not a whole ledger make it pass. The seeds are all broken; to repair one, the fuzzer would have to
// find a checksum.
func FuzzJudge(f *testing.F) {
	b := newBook()
	b.good(30)
	data := b.bytes(f)
	f.Add([]byte{})
	f.Add([]byte("FPLEDGER\x01"))
	for _, n := range []int{len(data) - 1, len(data) / 2, len(data) / 4} {
		f.Add(data[:n])
	}
	b.end = nil
	f.Add(b.bytes(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := verdict.Judge(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			if v != nil {
				t.Error("an error and a verdict")
			}
			return
		}
		requireSound(t, v)
		if v.Outcome == verdict.Pass {
			t.Error("pass")
		}
	})
}

// tape turns fuzzed bytes into numbers; a tape at its end gives zeros.
type tape []byte

func (t *tape) byte() byte {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return b
}

// number is mostly small, and sometimes any.
func (t *tape) number() uint32 {
	b := t.byte()
	if b < 250 {
		return uint32(b % 8)
	}
	return binary.LittleEndian.Uint32([]byte{t.byte(), t.byte(), t.byte(), b})
}

func (t *tape) time() time.Duration {
	return time.Duration(t.number()) * time.Duration(t.number()) * ms
}

// record is any record, however little it fits the others.
func (t *tape) record() any {
	switch t.byte() % 8 {
	case 0:
		return ledger.Event{Number: min(t.number(), ledger.None-1), ID: "e", Provider: t.byte() % 3, Resource: t.number(), Version: t.number(), Flags: ledger.EventFlags(t.byte() % 8)}
	case 1:
		return ledger.Delivery{Number: min(t.number(), ledger.None-1), Class: ledger.Class(t.byte() % 7), Provider: t.byte() % 3, First: t.number(), Count: uint16(t.number())}
	case 2:
		return ledger.Attempt{
			Delivery: min(t.number(), ledger.None-1), Try: uint16(t.byte() % 4), Segment: t.byte() % 4, Due: t.time(), Start: t.time(), Done: t.time(),
			Result: ledger.Result(t.byte() % 6), Then: ledger.Then(t.byte() % 7), Blocked: t.byte()%2 == 0,
		}
	case 3:
		return ledger.Call{At: t.time(), Event: t.number(), ID: "x", Step: t.byte() % 3, Outcome: ledger.Outcome(t.byte() % 12), Fault: t.number()}
	case 4:
		return ledger.Fault{At: t.time(), Number: min(t.number(), ledger.None-1), Step: t.byte() % 3, Side: ledger.Side(t.byte() % 9), Phase: ledger.Phase(t.byte() % 6), Name: "f"}
	case 5:
		return ledger.SegmentMark{At: t.time(), Segment: t.byte() % 4, Begin: t.byte()%2 == 0}
	case 6:
		return ledger.DeadLetter{Event: t.number(), Claimed: uint64(t.byte() % 3), Expected: uint64(t.byte() % 3)}
	default:
		return ledger.Note{At: t.time(), Text: "n"}
	}
}

// FuzzRecords: records that contradict each other in every way are judged without a panic and with balanced sums. Without an end record nothing passes; with one,
// nothing passes but what the plain oracle finds spotless.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{0}, true)
	f.Add([]byte{0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 2, 0, 1, 0, 1, 1, 1, 1, 1, 2, 1, 1, 3, 1, 3, 0, 0, 1, 255, 255, 255, 255}, true)
	f.Add([]byte{4, 1, 1, 0, 0, 1, 1, 4, 1, 2, 0, 0, 1, 2, 5, 1, 1, 0, 0, 6, 0, 1, 1}, false)
	f.Fuzz(func(t *testing.T, data []byte, ended bool) {
		b := newBook()
		b.header.Expect.Recovery, b.header.Expect.Availability, b.header.Expect.Delivered = s, 0.5, true
		b.header.Expect.Latency = []ledger.LatencyLimit{{Of: "effect", Percentile: 50, Limit: s}}
		if !ended {
			b.end = nil
		}
		for in := tape(data); len(in) > 0; {
			b.put(in.record())
		}
		v := judge(t, b)
		if v.Outcome != verdict.Pass {
			return
		}
		if !ended {
			t.Error("passed without an end record")
		}
		if want := newOracle(b.header, b.records, b.end).judge(); want.want() != verdict.Pass {
			t.Errorf("passed, and the oracle says %s: %s", want.want(), want)
		}
	})
}
