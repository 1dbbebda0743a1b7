package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"floodproof/bench/node"
	"floodproof/chaos"
	"floodproof/reports/ledger"
)

// serveSink lets the recording downstream answer until ctx ends.
func (r *run) serveSink(ctx context.Context, helpers *sync.WaitGroup) {
	helpers.Go(func() {
		if err := r.sink.Serve(ctx, r.sinkListener); err != nil && ctx.Err() == nil {
			r.note("the sink stopped: %v", err)
		}
	})
}

// targetEnv is what a target's process gets: the sink, the secrets, and the scenario's own providers.
func (r *run) targetEnv() ([]string, error) {
	env, err := r.cast.env()
	sink := r.links.address(chaos.LinkWorkerDownstream, r.sinkListener.Addr().String())
	return append(env, node.SinkVariable+"=http://"+sink+"/"+r.token), err
}

// loadAndDrain plays the day with its faults, waits until all of them are healed, and drains. The error is one that
// makes the ledger useless, never the end of ctx.
func (r *run) loadAndDrain(ctx context.Context) (ledger.End, error) {
	r.phase.Store(int32(Running))
	loaded := r.gen.Run(ctx)
	end := ledger.End{LoadEnd: time.Since(r.start), Interrupted: ctx.Err() != nil, Skipped: uint64(r.gen.Progress().Skipped)}
	r.noteLoad()
	r.plays.Wait()
	end.DrainFrom = time.Since(r.start)
	if loaded != nil && !end.Interrupted {
		return end, fmt.Errorf("send the load: %w", loaded)
	}
	r.phase.Store(int32(Draining))
	how := drained{ledger.NotDrained, "the run was interrupted"}
	if !end.Interrupted {
		how = r.drain(ctx)
		end.Interrupted = ctx.Err() != nil
	}
	end.Drain, end.DrainWhy = how.state, how.why
	listed, err := r.recordDeadLetters(context.WithoutCancel(ctx))
	if err != nil {
		r.note("the dead letters could not be read: %v", err)
	}
	end.DeadLettersListed = listed && err == nil
	return end, r.books.Err()
}

// noteLoad writes down what of the load its providers did not send.
func (r *run) noteLoad() {
	p := r.gen.Progress()
	if p.Disabled > 0 {
		r.note("%d providers gave their endpoint up and left %d deliveries unsent", p.Disabled, p.Suppressed)
	}
	if p.Withheld > 0 {
		r.note("providers withheld %d deliveries beyond what they send of one customer", p.Withheld)
	}
}

// beginSegment notes the begin of a segment and lets its faults loose.
func (r *run) beginSegment(ctx context.Context, segment int) error {
	r.segment.Store(int32(segment))
	r.ledger.SegmentMark(ledger.SegmentMark{At: time.Since(r.start), Segment: uint8(segment), Begin: true})
	r.plays.Go(func() { _ = r.timeline.Play(ctx, segment) }) // its only error is the end of ctx
	return nil
}

// endSegment waits until the segment's faults are healed and the backlog is empty, at most for boundaryWait: what one scale did must not be
// blamed on the next. What is lost or given up is not waited for: when the queue is known to be empty and the sink has been silent, nothing more can come.
func (r *run) endSegment(ctx context.Context, segment int) error {
	begin := time.Now()
	r.ledger.SegmentMark(ledger.SegmentMark{At: time.Since(r.start), Segment: uint8(segment)})
	r.plays.Wait()
	limit := time.NewTimer(boundaryWait)
	defer limit.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	look := time.NewTicker(drainPoll)
	defer look.Stop()
	for r.books.Tally().Pending > 0 {
		select {
		case <-tick.C:
		case <-look.C:
			if time.Since(latest(begin, r.sink.LastCall())) >= linger && r.target.depth(ctx) == 0 {
				r.note("segment %q ended with nothing queued, no call for %s, and %d events without an effect", r.segmentName(segment), linger, r.books.Tally().Pending)
				return nil
			}
		case <-limit.C:
			r.note("segment %q ended with a backlog of %d events after %s", r.segmentName(segment), r.books.Tally().Pending, boundaryWait)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *run) segmentName(segment int) string {
	if list := r.plan.Scenario.Segments; segment < len(list) {
		return list[segment].Name
	}
	return "tail"
}

// deadLetters is the target's list with the hash of what was really sent beside each claim.
func (r *run) deadLetters(ctx context.Context) ([]ledger.DeadLetter, error) {
	entries, err := r.target.deadLetters(ctx)
	if err != nil {
		return nil, err
	}
	letters := make([]ledger.DeadLetter, 0, len(entries))
	for _, e := range entries {
		l := ledger.DeadLetter{Event: ledger.None, ID: e.id, Claimed: e.hash, Reason: e.reason}
		if n, _, ok := r.books.lookup(e.id); ok {
			l.Event, l.ID = n, ""
		}
		letters = append(letters, l)
	}
	if err := r.hashPayloads(letters); err != nil {
		return nil, err
	}
	for i := range letters {
		for _, sent := range r.sent[letters[i].Event] {
			if letters[i].Expected == 0 || letters[i].Claimed == sent {
				letters[i].Expected = sent
			}
		}
	}
	return letters, nil
}

// hashPayloads makes sure that r.sent knows the events of the letters. Only what is new is rendered again, because that plans the whole day once more.
func (r *run) hashPayloads(letters []ledger.DeadLetter) error {
	unknown := map[uint32]bool{}
	for _, l := range letters {
		if _, known := r.sent[l.Event]; !known && l.Event != ledger.None {
			unknown[l.Event] = true
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	wanted := func(number uint32) bool { return unknown[number] }
	return r.gen.Traffic.Payloads(wanted, func(number uint32, payload []byte) {
		r.sent[number] = append(r.sent[number], payloadHash(payload))
	})
}

func (r *run) recordDeadLetters(ctx context.Context) (listed bool, err error) {
	letters, err := r.deadLetters(ctx)
	if err != nil {
		return false, err
	}
	for _, l := range letters {
		r.ledger.DeadLetter(l)
	}
	return r.target.listsDeadLetters(), nil
}

// note writes a remark into the ledger.
func (r *run) note(format string, args ...any) {
	if r.ledger != nil {
		r.ledger.Note(ledger.Note{At: time.Since(r.start), Text: fmt.Sprintf(format, args...)})
	}
}

// stopTarget stops the target and joins what went wrong before.
func (r *run) stopTarget(before error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	r.fleet.stop(ctx, "receiver")
	r.fleet.stop(ctx, "worker")
	r.fleet.wait()
	return before
}

func (r *run) closeLedger(end ledger.End) error {
	end.At = time.Since(r.start)
	end.Resources.DiskBytes = diskBytes(r.work)
	err := errors.Join(r.ledger.Close(end), r.file.Close())
	r.file = nil
	return err
}

// cleanup releases what prepare took: backend, port, working directory, guard. It may be called after a prepare that failed half-way.
func (r *run) cleanup() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
	defer cancel()
	var err error
	if r.target != nil {
		err = r.target.close(ctx)
	}
	err = errors.Join(err, r.links.close())
	if r.sinkListener != nil {
		_ = r.sinkListener.Close() // the sink has closed it, if it came so far
	}
	if r.file != nil {
		_ = r.file.Close() // still open because something else went wrong, which is reported
	}
	if r.work != "" {
		err = errors.Join(err, os.RemoveAll(r.work))
	}
	if r.guard != nil {
		err = errors.Join(err, r.guard.close(ctx))
	}
	return err
}
