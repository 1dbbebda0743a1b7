package kafka_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"floodproof/reference/queue"
	"floodproof/reference/queue/kafka"
)

// tunnel passes connections on and counts them.
type tunnel struct {
	listener net.Listener
	conns    atomic.Int64
	bytes    atomic.Int64
	all      sync.WaitGroup
}

func newTunnel(t *testing.T, to string) *tunnel {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &tunnel{listener: l}
	u.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp4", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			u.conns.Add(1)
			for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
				u.all.Go(func() {
					n, _ := io.Copy(way[0], way[1])
					u.bytes.Add(n)
					_, _ = in.Close(), out.Close()
				})
			}
		}
	})
	t.Cleanup(func() { // after the queues are closed
		_ = l.Close()
		u.all.Wait()
	})
	return u
}

// TestTunnel: a single broker behind another address than its own is reached there with everything, not just with the first question.
func TestTunnel(t *testing.T) {
	u := newTunnel(t, address(t))
	q, err := kafka.Open(t.Context(), kafka.Options{Brokers: u.listener.Addr().String(), Namespace: namespace()})
	if err != nil {
		t.Fatal(err)
	}
	const jobs, size = 4, 100_000
	random := rand.New(rand.NewPCG(4, 2))
	for i := range jobs {
		j := job(string(rune('a' + i)))
		j.Payload = make([]byte, size)
		for k := range j.Payload {
			j.Payload[k] = byte(random.Uint32())
		}
		if err := q.Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	for done := 0; done < jobs; {
		for _, lease := range receive(t, q, jobs) {
			if err := q.Settle(t.Context(), lease, queue.Done()); err != nil {
				t.Fatal(err)
			}
			done++
		}
	}
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = u.listener.Close()
	u.all.Wait()
	if u.conns.Load() < 3 || u.bytes.Load() < 2*jobs*size { // written and read
		t.Errorf("%d connections with %d bytes went through the tunnel: the queue went past it", u.conns.Load(), u.bytes.Load())
	}
}
