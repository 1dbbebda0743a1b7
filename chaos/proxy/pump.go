package proxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A pump's buffer begins small, since most webhooks are, and becomes large when a read fills it.
const (
	smallBuffer = 8 << 10
	largeBuffer = 128 << 10
)

// yieldEvery is after how many reads a pump lets others run. One whose bytes never run out would keep its processor for 10 ms at a time, and a change of the conditions
// waits for every pump.
const yieldEvery = 16

// errOver ends a pump whose connection somebody ended on purpose.
var errOver = errors.New("the connection was ended")

// pump moves the bytes of one direction. All but set is used by its goroutine only.
type pump struct {
	conn *conn
	dir  Direction
	rand *rand.Rand
	// shape is what holds now; it is changed with mu locked.
	shape atomic.Pointer[shape]
	// moved counts the bytes that were passed on, for the proxy.
	moved *atomic.Int64
	// woken has a token after a change, for a pump that waits neither for a read nor for a write.
	woken chan struct{}

	// mu keeps changes and deadlines apart: a deadline is set only while the conditions are those that it was computed from.
	mu       sync.Mutex
	src, dst duplex
	running  bool
	seen     chan struct{} // Closed when the pump has seen the newest shape, nil if it has.

	buf   []byte
	queue queue
	// ended: the stream's end was read. lost: something was swallowed by a black hole.
	ended, lost bool
	// next is the earliest time of the next write under a rate or a pause.
	next time.Time
	// replies is how many replies were begun, sent how many bytes of the last one passed.
	replies, sent int64
	// since is how many replies had begun when a cut came.
	since map[*imposed]int64
	// touched is the shape of which the connection is known to be touched.
	touched *shape
}

// newPump is called with the proxy locked.
func newPump(c *conn, d Direction, r *rand.Rand) *pump {
	p := &pump{conn: c, dir: d, rand: r, moved: &c.proxy.up, woken: make(chan struct{}, 1)}
	if d == Down {
		p.moved = &c.proxy.down
	}
	p.shape.Store(c.proxy.shapes[d])
	return p
}

// start gives the pump its ends. From here on changes wait for it.
func (p *pump) start(src, dst duplex) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.src, p.dst, p.running = src, dst, true
}

// set changes the conditions. The channel, if there is one, closes when the pump has seen them.
func (p *pump) set(s *shape) (seen <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shape.Load() == s {
		return nil
	}
	p.shape.Store(s)
	if !p.running {
		return nil
	}
	if p.seen == nil {
		p.seen = make(chan struct{})
	}
	past := time.Unix(1, 0)
	_ = p.src.SetReadDeadline(past) // These fail on closed connections only, whose pumps are awake.
	_ = p.dst.SetWriteDeadline(past)
	select {
	case p.woken <- struct{}{}:
	default:
	}
	return p.seen
}

// look takes note of the conditions that hold now.
func (p *pump) look() *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shape.Load()
	if p.lost && !s.blackHole {
		p.conn.end(true) // Going on would leave a hole in the stream.
	}
	_ = p.src.SetReadDeadline(time.Time{})
	_ = p.dst.SetWriteDeadline(time.Time{})
	select {
	case <-p.woken:
	default:
	}
	since := map[*imposed]int64{}
	for _, c := range s.cutters {
		n, known := p.since[c]
		if !known {
			n = p.replies
		}
		since[c] = n
	}
	p.since, p.next = since, time.Time{}
	p.tell()
	return s
}

// leave makes nobody wait for this pump any more.
func (p *pump) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = false
	p.tell()
}

func (p *pump) tell() {
	if p.seen != nil {
		close(p.seen)
		p.seen = nil
	}
}

// run moves bytes until the end of the stream. It reports whether that was an orderly end.
func (p *pump) run() (whole bool) {
	defer p.leave()
	p.buf = make([]byte, smallBuffer)
	for {
		var err error
		switch s := p.look(); {
		case s.isPlain() && p.queue.isEmpty():
			err = p.copy(s)
		default:
			err = p.hold(s)
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// copy passes everything on at once. It returns nil when the conditions change.
func (p *pump) copy(s *shape) error {
	for reads := 1; ; reads++ {
		n, err := p.src.Read(p.buf)
		if n > 0 {
			part := parcel{data: p.buf[:n], begins: p.isTurn()}
			if now := p.shape.Load(); now != s {
				p.take(now, part)
				return nil
			}
			if err := p.pass(part); err != nil || !p.queue.isEmpty() {
				return err
			}
			if n == len(p.buf) && n < largeBuffer {
				p.buf = make([]byte, largeBuffer)
			}
		}
		switch {
		case isDeadline(err):
			return nil
		case err != nil:
			return p.finish(err)
		case reads%yieldEvery == 0:
			runtime.Gosched()
		}
	}
}

// pass writes a parcel. What a change of the conditions keeps it from writing goes to the queue.
func (p *pump) pass(part parcel) error {
	n, err := p.write(part.data, part.begins)
	if !isDeadline(err) {
		return err
	}
	part.data, part.begins = part.data[n:], part.begins && n == 0
	p.take(p.shape.Load(), part)
	return nil
}

// write writes and keeps the books. Its error is a deadline, which means a change, or the end of the pump; where the receiver
// vanished there is none, and everything is swallowed.
func (p *pump) write(data []byte, begins bool) (int, error) {
	n, err := p.dst.Write(data)
	if begins && n > 0 {
		p.replies, p.sent = p.replies+1, 0
	}
	p.sent += int64(n)
	p.moved.Add(int64(n))
	if err == nil || isDeadline(err) {
		return n, err
	}
	if gone := p.conn.gone.Load(); gone != nil && gone.Direction != p.dir {
		return len(data), nil
	}
	return n, err
}

// isTurn reports whether what was just read follows on something that the other side said. It is asked before the bytes go on, so that the answer cannot be faster.
func (p *pump) isTurn() bool { return p.conn.turn.Swap(uint32(p.dir)) != uint32(p.dir) }

// finish passes the end of the stream on, and returns it.
func (p *pump) finish(end error) error {
	gone := p.conn.gone.Load()
	switch {
	case gone != nil && gone.Direction == p.dir:
		p.leave()
		<-p.conn.ctx.Done() // Nobody is told before the lift.
		return errOver
	case !errors.Is(end, io.EOF):
		p.conn.end(true)
		return end
	}
	if err := p.dst.CloseWrite(); err != nil && gone == nil {
		return err
	}
	return end
}

func isDeadline(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }
