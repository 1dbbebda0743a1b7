package memory_test

import (
	"bufio"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"floodproof/reference/queue"
	"floodproof/reference/queue/memory"
	"floodproof/reference/queue/memory/wire"
)

const (
	callers  = 64
	bodySize = 1500
)

// BenchmarkEnqueue has 64 callers with one job each.
func BenchmarkEnqueue(b *testing.B) {
	s := private(b)
	benchmarkEnqueue(b, open(b, memory.Options{Address: s.Address()}))
}

// BenchmarkEnqueueBesideWorker is the same while another handle receives and settles what comes, 64 at a time.
func BenchmarkEnqueueBesideWorker(b *testing.B) {
	s := private(b)
	q, worker := open(b, memory.Options{Address: s.Address()}), open(b, memory.Options{Address: s.Address()})
	var settled atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				leases, err := worker.Receive(b.Context(), "", callers)
				if err != nil {
					return
				}
				var settling sync.WaitGroup
				for _, lease := range leases {
					settling.Go(func() {
						if worker.Settle(b.Context(), lease, queue.Done()) == nil {
							settled.Add(1)
						}
					})
				}
				settling.Wait()
			}
		})
	}
	benchmarkEnqueue(b, q)
	b.ReportMetric(float64(settled.Load())/b.Elapsed().Seconds(), "settled/s")
	if err := worker.Close(b.Context()); err != nil {
		b.Error(err)
	}
	wg.Wait()
}

func benchmarkEnqueue(b *testing.B, q *memory.Queue) {
	b.Helper()
	payload := make([]byte, bodySize)
	var next atomic.Int64
	total := int64(b.N)
	b.SetBytes(bodySize)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= total; i = next.Add(1) {
				if err := q.Enqueue(b.Context(), queue.Job{Provider: "stripe", EventID: fmt.Sprint("evt_", i), Payload: payload}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkRaw is the ceiling of the same connection by the same means: 64 callers, each of whom sends a frame of 1.5 KB to an echo that answers it without a body.
func BenchmarkRaw(b *testing.B) {
	var config net.ListenConfig
	l, err := config.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var echo sync.WaitGroup
	echo.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		sender := wire.NewSender(conn)
		defer func() { _ = sender.Stop() }()
		r := bufio.NewReaderSize(conn, 64<<10)
		for {
			number, _, err := wire.ReadFrame(r)
			if err != nil || sender.Send(number, nil) != nil {
				return
			}
		}
	})
	var dialer net.Dialer
	conn, err := dialer.DialContext(b.Context(), "tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	benchmarkFrames(b, conn)
	_ = conn.Close()
	_ = l.Close()
	echo.Wait()
}

func benchmarkFrames(b *testing.B, conn net.Conn) {
	b.Helper()
	payload := make([]byte, bodySize)
	sender := wire.NewSender(conn)
	answers := make([]chan struct{}, callers)
	for i := range answers {
		answers[i] = make(chan struct{}, 1)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		r := bufio.NewReaderSize(conn, 64<<10)
		for range b.N {
			number, _, err := wire.ReadFrame(r)
			if err != nil {
				b.Error(err)
				return
			}
			answers[number] <- struct{}{}
		}
	})
	var next atomic.Int64
	total := int64(b.N)
	b.ResetTimer()
	var wg sync.WaitGroup
	for g := range callers {
		wg.Go(func() {
			for next.Add(1) <= total {
				if err := sender.Send(uint64(g), func(p []byte) []byte { return append(p, payload...) }); err != nil {
					b.Error(err)
					return
				}
				<-answers[g]
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "frames/s")
	reading.Wait()
	_ = sender.Stop()
}
