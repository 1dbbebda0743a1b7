package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/loadgen/provider"
	"floodproof/reports/ledger"
)

const benchSlots = 64

// trivialServer answers every request with an empty 200 and does no more than it must, so that the client is what is measured.
func trivialServer(b *testing.B) (url string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer conn.Close()
				serveTrivially(conn)
			})
		}
	})
	b.Cleanup(func() {
		_ = l.Close()
		conns.Wait()
	})
	return "http://" + l.Addr().String() + "/"
}

func serveTrivially(conn net.Conn) {
	r := bufio.NewReader(conn)
	length := []byte("Content-Length: ")
	for {
		size := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if len(line) == 2 {
				break
			}
			if v, ok := bytes.CutPrefix(line, length); ok {
				if size, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
					return
				}
			}
		}
		if _, err := r.Discard(size); err != nil {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"); err != nil {
			return
		}
	}
}

// small is acme with a constant body of 1.5 KB, signed: what is measured is the generator, not a fake provider's formatting.
func small() *provider.Provider {
	p := acme()
	body := []byte(`{"id":"` + strings.Repeat("x", 1480) + `"}`)
	p.Render = func(r *provider.Request, _ provider.Delivery) { r.Body = append(r.Body, body...) }
	return p
}

// BenchmarkGenerator sends as fast as the slots allow; BenchmarkPlainClient is the same work with nothing but net/http. Their difference is the price of
// scheduling and bookkeeping.
func BenchmarkGenerator(b *testing.B) {
	in := plain(evenly(0), b.N)
	in.Mix = []Share{share(small(), 1)}
	in.Mix[0].URL = trivialServer(b)
	g := &Generator{Traffic: in, Segments: wholeDay(24 * 3600 * 1e3), MaxInFlight: benchSlots, Books: discard{}}
	b.ReportAllocs()
	b.ResetTimer()
	if err := g.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

func BenchmarkPlainClient(b *testing.B) {
	url := trivialServer(b)
	p, secrets := small(), []string{"whsec_0123456789abcdef"}
	transport := NewTransport(benchSlots)
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport, Timeout: p.Timeout}
	var group errgroup.Group
	b.ReportAllocs()
	b.ResetTimer()
	for worker := range benchSlots {
		group.Go(func() error {
			req := provider.Request{Header: http.Header{}}
			for n := worker; n < b.N; n += benchSlots {
				req.Reset()
				p.Render(&req, provider.Delivery{})
				p.Sign(&req, provider.Signing{Secrets: secrets, Now: time.Now()})
				r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, bytes.NewReader(req.Body))
				if err != nil {
					return err
				}
				r.Header = req.Header
				resp, err := client.Do(r)
				if err != nil {
					return err
				}
				if err := resp.Body.Close(); err != nil {
					return err
				}
				if resp.StatusCode != http.StatusOK {
					return fmt.Errorf("status %d", resp.StatusCode)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
}

// BenchmarkLateness sends at a fixed rate and reports how long after its due time a request begins.
func BenchmarkLateness(b *testing.B) {
	for _, rate := range []int{100, 2000, 10_000} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) {
			in := plain(evenly(time.Second/time.Duration(rate)), b.N)
			in.Mix = []Share{share(small(), 1)}
			in.Mix[0].URL = trivialServer(b)
			late := &lateness{}
			g := &Generator{Traffic: in, Segments: wholeDay(1), Books: late}
			g.Segments[0].Until = time.Duration(b.N) * time.Second / time.Duration(rate)
			if err := g.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
			slices.Sort(late.all)
			for _, p := range []float64{50, 99} {
				at := late.all[int(math.Ceil(p/100*float64(len(late.all))))-1]
				b.ReportMetric(float64(at.Microseconds()), fmt.Sprintf("µs-late-p%v", p))
			}
			b.ReportMetric(float64(g.Progress().Blocked), "blocked")
		})
	}
}

// lateness is a Books that keeps by how much each attempt was late.
type lateness struct {
	discard
	all []time.Duration
}

func (l *lateness) Attempt(a ledger.Attempt) { l.all = append(l.all, a.Start-a.Due) }
