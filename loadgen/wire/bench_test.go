package wire

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// serverVariable makes the test binary the server of the benchmarks.
const serverVariable = "FLOODPROOF_WIRE_BENCHMARK_SERVER"

// serveBenchmark answers every request with an empty 200, and does no more than it must. It ends with its standard input.
func serveBenchmark() int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 1
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveTrivially(conn)
		}
	}()
	fmt.Fprintln(os.Stdout, "http://"+l.Addr().String()+"/webhooks/acme")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

func serveTrivially(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 16<<10)
	name, answer := []byte("Content-Length: "), []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok")
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
			if value, ok := bytes.CutPrefix(line, name); ok {
				if size, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
					return
				}
			}
		}
		if _, err := r.Discard(size); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

// serverProcess starts the server in a process of its own with one processor, so that it takes nothing from the client's.
func serverProcess(b *testing.B) (url string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), serverVariable+"=1", "GOMAXPROCS=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// load is a closed loop of so many workers, each of which signs a body of 1.5 KB, sends it and reads the answer.
type load struct {
	url     string
	workers int
	send    func(*http.Request) (*http.Response, error)
	context func() (context.Context, context.CancelFunc)
}

func (l load) run(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	body := []byte(`{"id":"` + strings.Repeat("x", 1480) + `"}`)
	template, err := http.NewRequestWithContext(context.Background(), http.MethodPost, l.url, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var group errgroup.Group
	before := cpuTime()
	b.ResetTimer()
	for worker := range l.workers {
		group.Go(func() error {
			mac := hmac.New(sha256.New, []byte("whsec_0123456789abcdef"))
			var sum, signature [64]byte
			reader := new(bytes.Reader)
			closer := io.NopCloser(reader)
			for n := worker; n < b.N; n += l.workers {
				mac.Reset()
				mac.Write(body)
				hex.Encode(signature[:], mac.Sum(sum[:0]))
				reader.Reset(body)
				ctx, cancel := l.context()
				req := template.WithContext(ctx)
				req.Header = http.Header{
					"Content-Type": {"application/json"}, "User-Agent": {"Acme-Webhooks/1.0"}, "X-Acme-Topic": {"orders/create"},
					"X-Acme-Delivery": {"b1c8f9c0-2e9a-4a39-8a07-2d0a0a8f5c11"}, "X-Acme-Signature": {string(signature[:])},
				}
				req.Body, req.ContentLength = closer, int64(len(body))
				resp, err := l.send(req)
				if err != nil {
					cancel()
					return err
				}
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				cancel()
				if err != nil || resp.StatusCode != http.StatusOK {
					return fmt.Errorf("status %d, %w", resp.StatusCode, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "req/s")
	if spent := cpuTime() - before; spent > 0 {
		b.ReportMetric(float64(b.N)/spent.Seconds(), "req/cpu-s")
	}
}

// BenchmarkClient compares this client with net/http's, as it is and within http.Client as most load generators use it, on one processor, against the same
// server in another process. With a deadline each request has a context that may end; without, the context never does.
//
// req/cpu-s is how many requests one second of a processor of this process pays for: it tells the same on a busy machine.
func BenchmarkClient(b *testing.B) {
	url := serverProcess(b)
	const workers = 64
	wire := New(Options{MaxIdle: workers})
	defer wire.CloseIdleConnections()
	http1 := new(http.Protocols)
	http1.SetHTTP1(true)
	transport := &http.Transport{
		Protocols: http1, DisableCompression: true, MaxIdleConns: workers, MaxIdleConnsPerHost: workers, WriteBufferSize: 32 << 10, ReadBufferSize: 2 << 10,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	shared, stop := context.WithCancel(b.Context())
	defer stop()
	for _, ctx := range []struct {
		name string
		make func() (context.Context, context.CancelFunc)
	}{
		{"context=background", func() (context.Context, context.CancelFunc) { return context.Background(), func() {} }},
		{"context=shared", func() (context.Context, context.CancelFunc) { return shared, func() {} }},
		{"context=timeout", func() (context.Context, context.CancelFunc) { return context.WithTimeout(shared, 10*time.Second) }},
	} {
		for _, with := range []struct {
			name string
			send func(*http.Request) (*http.Response, error)
		}{
			{"wire", wire.RoundTrip},
			{"http.Transport", transport.RoundTrip},
			{"http.Client", client.Do},
		} {
			b.Run(ctx.name+"/client="+with.name, load{url, workers, with.send, ctx.make}.run)
		}
	}
}
