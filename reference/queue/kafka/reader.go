package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"floodproof/reference/queue/memory/state"
)

// errCut: the log is shorter than it was, or another one from some place on. A broker that lost its power, and had not synced what it acknowledged, comes back with such a log.
var errCut = errors.New("the log lost records that were there before: what they stored is gone, and the queue goes on from what is left")

// read begins to read the log, from its beginning: a handle that only enqueues need not know what is in it.
func (e *engine) read() error {
	e.reading.Do(func() {
		ctx, stop := context.WithCancel(context.Background())
		e.stop = stop
		e.tailing.Go(func() { e.tail(ctx) })
	})
	return e.trouble()
}

// tail applies the log until the context ends or it cannot be read. A log that was cut is read once more, from its beginning: whoever went on from where he was would miss
// what is written in place of what was lost.
func (e *engine) tail(ctx context.Context) {
	for {
		err := e.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errCut):
			e.rewind(err)
		default:
			e.breakDown(err)
			return
		}
	}
}

// follow applies the log from its beginning, until the context ends or an error.
func (e *engine) follow(ctx context.Context) error {
	p := position{topic: e.topic}
	start := map[string]map[int32]kgo.Offset{e.topic: {0: kgo.NewOffset().At(0)}}
	reader, err := kgo.NewClient(append(e.options[:len(e.options):len(e.options)], kgo.ConsumePartitions(start), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchMaxWait(time.Second), kgo.FetchMaxPartitionBytes(2*maxRecord), kgo.WithHooks(&p.made))...)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	defer reader.Close()
	for ctx.Err() == nil {
		fetches := reader.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if ctx.Err() == nil && final(failed.Err) {
				return p.failed(failed.Err)
			}
		}
		if p.mustLook(reader) {
			continue // and come again with the record before
		}
		for iter := fetches.RecordIter(); !iter.Done(); {
			f, err := p.take(iter.Next())
			if err != nil {
				return err
			}
			if f != nil {
				e.apply(f)
			}
		}
	}
	return ctx.Err()
}

// position is how far a reader is.
type position struct {
	topic string
	made  connections
	// next is the offset of the record that comes, and last the head of the frame before it.
	next int64
	last frame
	// known is the number of connections that were made before the last look, and looking says that the record before next is on its way.
	known   int64
	looking bool
}

// connections counts those that a client has made.
type connections struct{ atomic.Int64 }

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (c *connections) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	if err == nil {
		c.Add(1)
	}
}

// mustLook reports that what was read may be from another log than before, since it may have come through another connection. It then has the last record read once more.
//
// Note: Kafka tells of it itself, by the epoch of the partition's leader (KIP-320), which the client heeds. A broker that does not change the epoch when it starts, as
// kfake, would leave a log unnoticed that was cut and has since become longer than it was.
func (p *position) mustLook(reader *kgo.Client) bool {
	made := p.made.Load()
	if made == p.known {
		return false
	}
	p.known = made
	if p.next == 0 {
		return false
	}
	p.looking = true
	reader.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.topic: {0: {Epoch: -1, Offset: p.next - 1}}})
	return true
}

// take is the frame of a record, nil if it was applied before.
func (p *position) take(record *kgo.Record) (*frame, error) {
	f, err := readFrame(record.Value)
	if p.looking {
		p.looking = false
		if err != nil || record.Offset != p.next-1 || f.writer != p.last.writer || f.number != p.last.number {
			return nil, fmt.Errorf("read the log at offset %d: %w", p.next-1, errCut)
		}
		return nil, nil
	}
	if err != nil || record.Offset != p.next {
		return nil, errors.Join(fmt.Errorf("read the log: offset %d follows %d", record.Offset, p.next-1), err)
	}
	if record.Attrs.TimestampType() == 1 {
		f.clock = record.Timestamp.UnixMicro() // the broker's
	}
	p.next++
	p.last = frame{writer: f.writer, number: f.number}
	f.offset = record.Offset
	return &f, nil
}

// failed says what a final error means.
func (p *position) failed(err error) error {
	var lost *kgo.ErrDataLoss
	if errors.As(err, &lost) || p.next > 0 && errors.Is(err, kerr.OffsetOutOfRange) {
		return fmt.Errorf("read the log at offset %d: %w", p.next, errors.Join(errCut, err))
	}
	return fmt.Errorf("read the log at offset %d: %w: open the queue again", p.next, err)
}

// final says that reading on is no use: the log was cut, or is gone. The client tries everything else again by itself.
func final(err error) bool {
	var lost *kgo.ErrDataLoss
	var said *kerr.Error
	return errors.As(err, &lost) || errors.As(err, &said) && !said.Retriable
}

// apply applies a frame, and answers those whose it is.
func (e *engine) apply(f *frame) {
	mine := f.writer == e.writer
	results, repeated := e.fold.apply(f, mine) // nobody else replaces it
	if !mine || repeated {
		return
	}
	e.mu.Lock()
	var orphans []state.Command
	for i, k := range e.pending[f.number] {
		if blind(k.command.Op) {
			continue // is answered when it is acknowledged
		}
		orphans = append(orphans, e.answer(k, results[i], nil)...)
	}
	for number := range e.pending {
		if number <= f.number { // what is not in the log by now never takes effect
			delete(e.pending, number)
		}
	}
	e.mu.Unlock()
	for i := range orphans {
		select {
		case e.intake <- &call{command: &orphans[i], size: 64, done: make(chan struct{})}:
		default: // it lapses
		}
	}
}

// rewind forgets what the log said. Those who wait for what they wrote are told; a frame that is being written may still come to stand in the log.
func (e *engine) rewind(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fold, e.lost = newFold(), err
	for number, group := range e.pending {
		if number == e.writing {
			continue
		}
		delete(e.pending, number)
		for _, k := range group {
			e.answer(k, state.Result{}, err)
		}
	}
}

// breakDown ends all calls that wait for the log, now and later.
func (e *engine) breakDown(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = err
	for _, group := range e.pending {
		for _, k := range group {
			e.answer(k, state.Result{}, err)
		}
	}
}
