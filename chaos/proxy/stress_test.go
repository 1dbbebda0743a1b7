package proxy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/chaos/proxy"
)

// noise is an endless stream that a seed determines.
func noise(seed uint64) *rand.ChaCha8 {
	return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
}

// pour writes noise in pieces of all sizes until stop closes, then half-closes; it returns how much that was. It pauses now and then, so that
// connections are caught idle as well as busy.
func pour(c net.Conn, seed uint64, stop <-chan struct{}) (total int64, err error) {
	source, sizes := noise(seed), rand.New(rand.NewPCG(seed, 1))
	buf := make([]byte, 64<<10)
	for {
		select {
		case <-stop:
			return total, c.(interface{ CloseWrite() error }).CloseWrite()
		default:
		}
		piece := buf[:1+sizes.IntN(1<<sizes.IntN(17))]
		_, _ = source.Read(piece) // It never fails.
		n, err := c.Write(piece)
		total += int64(n)
		if err != nil {
			return total, fmt.Errorf("after %d bytes: %w", total, err)
		}
		if sizes.IntN(8) == 0 {
			<-time.After(time.Duration(sizes.IntN(int(2 * time.Millisecond))))
		}
	}
}

// check reads until the end and compares each byte with the noise.
func check(c net.Conn, seed uint64) (total int64, err error) {
	source := noise(seed)
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := c.Read(got)
		_, _ = source.Read(want[:n])
		if !bytes.Equal(got[:n], want[:n]) {
			return total, fmt.Errorf("byte %d or one of the %d after it is wrong", total, n)
		}
		total += int64(n)
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, fmt.Errorf("after %d bytes: %w", total, err)
		}
	}
}

// lossless draws a condition that must lose nothing.
func lossless(r *rand.Rand) proxy.Condition {
	c := proxy.Condition{Direction: proxy.Direction(r.IntN(3))}
	for range 1 + r.IntN(2) {
		switch r.IntN(7) {
		case 0:
			c.Delay = time.Duration(1 + r.IntN(int(20*time.Millisecond)))
			c.Jitter = time.Duration(r.Int64N(int64(c.Delay)))
		case 1:
			c.Rate = 1 + r.Int64N(10_000_000)
		case 2:
			c.Slice = 1 + r.IntN(2000)
		case 3:
			c.Slice, c.Pause = 1+r.IntN(100), time.Duration(r.IntN(int(time.Millisecond)))
		case 4:
			c.Stall = true
		case 5:
			c.Cut = &proxy.Cut{Byte: 1 << 60}
		case 6:
			c.New = proxy.Refuse
		}
	}
	return c
}

// TestNothingIsLostOrDoubled sends noise both ways through several connections while conditions come and go, several at once, and compares every byte.
func TestNothingIsLostOrDoubled(t *testing.T) {
	const connections, most = 2, 3
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			s := newServer(t, nil)
			p := newProxy(t, proxy.Options{Upstream: s.addr, Buffer: 1 << (10 + 4*seed), Rand: rand.New(rand.NewPCG(seed, 0))})
			stop := make(chan struct{})
			var streams errgroup.Group
			run := func(f func() error) {
				streams.Go(func() error {
					err := f()
					if err != nil {
						_ = p.Close() // So that no other stream waits for what will not come.
					}
					return err
				})
			}
			flow := func(from, to net.Conn, seed uint64) {
				sent := make(chan int64, 1)
				run(func() error {
					n, err := pour(from, seed, stop)
					sent <- n
					return err
				})
				run(func() error {
					got, err := check(to, seed)
					if n := <-sent; err == nil && n != got {
						err = fmt.Errorf("%d bytes arrived of %d", got, n)
					}
					return err
				})
			}
			for i := range uint64(connections) {
				client := dial(t, p.Addr())
				_ = client.SetDeadline(time.Time{})
				far := s.next(t)
				flow(client, far, 2*i)
				flow(far, client, 2*i+1)
			}
			r := rand.New(rand.NewPCG(seed, 2))
			var lifts []func() proxy.Met
			for range 150 {
				if n := len(lifts); n == most || n > 0 && r.IntN(2) == 0 {
					i := r.IntN(n)
					lifts[i]()
					lifts = append(lifts[:i], lifts[i+1:]...)
				} else {
					lifts = append(lifts, impose(t, p, lossless(r)))
				}
				<-time.After(time.Duration(r.IntN(int(4 * time.Millisecond))))
			}
			for _, lift := range lifts {
				lift()
			}
			close(stop)
			if err := streams.Wait(); err != nil {
				t.Fatal(err)
			}
			if st := p.Stats(); st.Up < 100_000 || st.Down < 100_000 {
				t.Errorf("moved %d bytes up and %d down, too few to show anything", st.Up, st.Down)
			}
		})
	}
}

// TestImposeIsExact: once Impose has returned, not one byte more slips through, however busy the connection is.
func TestImposeIsExact(t *testing.T) {
	p, client, far := pair(t)
	stop := make(chan struct{})
	var streams errgroup.Group
	streams.Go(func() error { _, err := pour(client, 1, stop); return err })
	streams.Go(func() error { _, err := check(far, 1); return err })
	for range 20 {
		before := p.Stats().Up
		until(t, "bytes flow", func() bool { return p.Stats().Up > before+100_000 })
		lift := impose(t, p, proxy.Condition{Direction: proxy.Up, Stall: true})
		at := p.Stats().Up
		<-time.After(5 * time.Millisecond)
		if now := p.Stats().Up; now != at {
			t.Errorf("%d bytes passed a stall", now-at)
		}
		lift()
	}
	close(stop)
	if err := streams.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestConditionsReachConnectionsThatComeMeanwhile: none escapes between accept and condition.
func TestConditionsReachConnectionsThatComeMeanwhile(t *testing.T) {
	s := newServer(t, echo)
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	for range 50 {
		type result struct {
			lift func() (proxy.Met, error)
			err  error
		}
		imposed := make(chan result, 1)
		go func() {
			lift, err := p.Impose(proxy.Condition{Direction: proxy.Down, BlackHole: true})
			imposed <- result{lift, err}
		}()
		c := dial(t, p.Addr())
		r := <-imposed
		if r.err != nil {
			t.Fatal(r.err)
		}
		send(t, c, "x")
		until(t, "the byte went up", func() bool { return p.Stats().Up > 0 })
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			t.Fatal("a reply escaped the black hole")
		}
		if _, err := r.lift(); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
}

// TestCloseWhileConditionsChange is for the race detector and the search for leaked goroutines.
func TestCloseWhileConditionsChange(t *testing.T) {
	s := newServer(t, echo)
	for range 10 {
		p := newProxy(t, proxy.Options{Upstream: s.addr})
		var group errgroup.Group
		for i := range uint64(4) {
			group.Go(func() error {
				r := rand.New(rand.NewPCG(i, 3))
				for range 1000 {
					lift, err := p.Impose(lossless(r))
					if err != nil {
						return nil // The proxy was closed, or its port could not be closed because it was.
					}
					if _, err := lift(); err != nil {
						return err
					}
				}
				return nil
			})
		}
		for range 3 {
			var d net.Dialer
			if c, err := d.DialContext(t.Context(), "tcp", p.Addr()); err == nil {
				_, _ = c.Write([]byte("x"))
				defer c.Close()
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	}
}
