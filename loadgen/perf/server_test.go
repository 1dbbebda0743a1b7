package perf

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// serverVariable makes the test binary a server of this kind. It prints its URL, ends with its standard input, and prints what it has seen as it ends.
const serverVariable = "FLOODPROOF_PERF_SERVER"

// The kinds of servers.
const (
	// atOnce answers every request at once with an empty 200 and does no more than it must.
	atOnce = "at-once"
	// timing does so too, and keeps when each request came.
	timing = "timing"
	// stalling is timing that answers nothing for a second, once, from its thousandth request on.
	stalling = "stalling"
	// fixed works on one request at a time, for one millisecond each.
	fixed = "fixed"
)

// fixedService is how long a server of the kind fixed works on a request.
const fixedService = time.Millisecond

// seen is what a server reports as it ends.
type seen struct {
	Requests    int
	Connections int
	// MedianGapUs is between one arrival and the next, in microseconds. Most10ms and Most100ms are the highest number of arrivals within any 10 and 100 ms. Only
	// from timing and stalling.
	MedianGapUs         float64
	Most10ms, Most100ms int
}

// server is what a server process shares between its connections.
type server struct {
	kind string

	mu          sync.Mutex
	requests    int
	connections int
	arrivals    []time.Duration
	// free is when the one worker of the kind fixed is free again, or when the stall is over.
	free time.Time
}

func serveProcess(kind string) int {
	s := &server{kind: kind}
	addr, err := s.listen()
	if err != nil {
		return 1
	}
	fmt.Fprintln(os.Stdout, "http://"+addr+"/webhooks/acme")
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.mu.Lock()
	defer s.mu.Unlock()
	if json.NewEncoder(os.Stdout).Encode(s.summary()) != nil {
		return 1
	}
	return 0
}

// listen starts to serve.
func (s *server) listen() (addr string, err error) {
	if s.kind == atOnce {
		addr, err := serveRaw(func(requests, connections int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.requests += requests
			s.connections += connections
		})
		if !errors.Is(err, errors.ErrUnsupported) {
			return addr, err
		}
	}
	if s.keeps() {
		s.arrivals = make([]time.Duration, 0, 1<<20)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	start := time.Now()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.serve(conn, start)
		}
	}()
	return l.Addr().String(), nil
}

// serve answers the requests of one connection. Each has the same framing: a head with a Content-Length, and that much.
func (s *server) serve(conn net.Conn, start time.Time) {
	defer conn.Close()
	s.mu.Lock()
	s.connections++
	s.mu.Unlock()
	r := bufio.NewReaderSize(conn, 16<<10)
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	for {
		length, closing, err := readHead(r)
		if err != nil {
			return
		}
		at := time.Since(start)
		if _, err := r.Discard(length); err != nil {
			return
		}
		s.work(at)
		if _, err := conn.Write(answer); err != nil || closing {
			return
		}
	}
}

// readHead reads a head and returns the length of the body, and whether the connection ends with it.
func readHead(r *bufio.Reader) (length int, closing bool, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		switch {
		case len(line) <= 2:
			return length, closing, nil
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len("Content-Length: "):]))); err != nil {
				return 0, false, err
			}
		case bytes.HasPrefix(line, []byte("Connection: close")):
			closing = true
		}
	}
}

// work takes the time that a request takes on this kind of server.
func (s *server) work(at time.Duration) {
	s.mu.Lock()
	s.requests++
	if s.keeps() {
		s.arrivals = append(s.arrivals, at)
	}
	switch now := time.Now(); s.kind {
	case fixed:
		if s.free.Before(now) {
			s.free = now
		}
		s.free = s.free.Add(fixedService)
	case stalling:
		if s.requests == 1000 {
			s.free = now.Add(time.Second)
		}
	}
	until := s.free
	s.mu.Unlock()
	waitUntil(until)
}

// keeps reports whether the server keeps when each request came.
func (s *server) keeps() bool { return s.kind == timing || s.kind == stalling }

// process is a server in a process of its own.
type process struct {
	url string
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

// startServer starts a server with so many processors.
func startServer(b *testing.B, kind string, processors int) *process {
	b.Helper()
	p := &process{cmd: exec.CommandContext(b.Context(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), serverVariable+"="+kind, "GOMAXPROCS="+strconv.Itoa(processors))
	in, err := p.cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	p.url = strings.TrimSpace(line)
	return p
}

// stop ends the server and returns what it has seen.
func (p *process) stop(b *testing.B) seen {
	b.Helper()
	_ = p.in.Close()
	var s seen
	if err := json.NewDecoder(p.out).Decode(&s); err != nil {
		b.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		b.Error(err)
	}
	return s
}
