package proxy_test

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"floodproof/chaos/proxy"
)

// BenchmarkLatency asks and is answered, directly and through a proxy in turns, so that both see the same machine, and reports what the proxy adds at the median.
func BenchmarkLatency(b *testing.B) {
	s := newServer(b, echo)
	p := newProxy(b, proxy.Options{Upstream: s.addr})
	direct, through := dial(b, s.addr), dial(b, p.Addr())
	var took [2][]time.Duration
	message := make([]byte, 1024)
	for b.Loop() {
		for i, c := range []net.Conn{direct, through} {
			start := time.Now()
			if _, err := c.Write(message); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(c, message); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
		if len(took[0])%1000 == 0 {
			for _, c := range []net.Conn{direct, through} {
				_ = c.SetDeadline(time.Now().Add(patience))
			}
		}
	}
	for i := range took {
		slices.Sort(took[i])
	}
	at := func(i int, q float64) float64 {
		return float64(took[i][int(q*float64(len(took[i])-1))].Nanoseconds()) / 1000
	}
	b.ReportMetric(at(0, 0.5), "direct-p50-us")
	b.ReportMetric(at(1, 0.5)-at(0, 0.5), "added-p50-us")
	b.ReportMetric(at(1, 0.99)-at(0, 0.99), "added-p99-us")
}

func BenchmarkThroughput(b *testing.B) {
	s := newServer(b, func(c net.Conn) {
		buf := make([]byte, 256<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
		}
	})
	p := newProxy(b, proxy.Options{Upstream: s.addr})
	delayed := newProxy(b, proxy.Options{Upstream: s.addr, Buffer: 16 << 20})
	if _, err := delayed.Impose(proxy.Condition{Delay: time.Millisecond}); err != nil {
		b.Fatal(err)
	}
	for _, way := range []struct{ name, addr string }{{"direct", s.addr}, {"proxy", p.Addr()}, {"proxy with 1 ms of delay", delayed.Addr()}} {
		b.Run(way.name, func(b *testing.B) {
			c := dial(b, way.addr)
			_ = c.SetDeadline(time.Time{})
			chunk := make([]byte, 128<<10)
			b.SetBytes(int64(len(chunk)))
			for b.Loop() {
				if _, err := c.Write(chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkImpose puts a stall in place on connections that are as busy as they can be, and lifts it: how long until a condition holds for all of them.
func BenchmarkImpose(b *testing.B) {
	for _, bb := range []struct {
		name  string
		conns int64
		busy  bool
	}{{"one that is busy", 1, true}, {"eight that are busy", 8, true}, {"a thousand that are idle", 1000, false}} {
		b.Run(bb.name, func(b *testing.B) {
			s := newServer(b, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
			p := newProxy(b, proxy.Options{Upstream: s.addr})
			for range bb.conns {
				c := dial(b, p.Addr())
				_ = c.SetDeadline(time.Time{})
				if !bb.busy {
					continue
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for chunk := make([]byte, 128<<10); ; {
						if _, err := c.Write(chunk); err != nil {
							return
						}
					}
				}()
				b.Cleanup(func() {
					c.Close()
					<-ended
				})
			}
			until(b, "all are accepted", func() bool { return p.Stats().Open == bb.conns })
			var worst time.Duration
			for b.Loop() {
				start := time.Now()
				lift, err := p.Impose(proxy.Condition{Stall: true})
				worst = max(worst, time.Since(start))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := lift(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
		})
	}
}
