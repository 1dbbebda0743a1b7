package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestAnswers has a server say all kinds of things, byte by byte or at once, and sees what the client makes of it and whether it uses the connection again.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	const ok, ended = "HTTP/1.1 200 OK\r\n", true
	for _, tt := range []struct {
		name   string
		method string
		answer string
		// ends: the server closes the connection behind the answer.
		ends bool
		want got
		// fails is in the error; of the body, if want has a status.
		fails string
		again bool
	}{
		{name: "plain", answer: okAnswer, want: got{200, "ok"}, again: true},
		{name: "empty", answer: ok + "Content-Length: 0\r\n\r\n", want: got{200, ""}, again: true},
		{name: "no reason", answer: "HTTP/1.1 204\r\n\r\n", want: got{204, ""}, again: true},
		{name: "empty reason", answer: "HTTP/1.1 204 \r\n\r\n", want: got{204, ""}, again: true},
		{name: "unknown code", answer: "HTTP/1.1 799 Whatever\r\nContent-Length: 0\r\n\r\n", want: got{799, ""}, again: true},
		{name: "lines in LF", answer: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", want: got{200, "ok"}, again: true},
		{name: "lower case, no blank", answer: ok + "content-length:2\r\n\r\nok", want: got{200, "ok"}, again: true},
		{name: "blanks around a value", answer: ok + "Content-Length: \t 2 \t\r\n\r\nok", want: got{200, "ok"}, again: true},
		{name: "same length twice", answer: ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", want: got{200, "ok"}, again: true},
		{name: "chunked", answer: ok + "Transfer-Encoding: Chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", want: got{200, "ok"}, again: true},
		{name: "chunks with everything", answer: ok + "Transfer-Encoding: chunked\r\n\r\n1;a=\"b\"\r\no\r\n0001 \r\nk\r\n000\r\nX-Sum: 1\r\n\r\n", want: got{200, "ok"}, again: true},
		{name: "until the end", answer: ok + "\r\nok", ends: ended, want: got{200, "ok"}},
		{name: "said to close", answer: ok + "Connection: X, Close\r\nContent-Length: 2\r\n\r\nok", want: got{200, "ok"}},
		{name: "HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", want: got{200, "ok"}},
		{name: "HTTP/1.0 kept", answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", want: got{200, "ok"}, again: true},
		{name: "interim", answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + okAnswer, want: got{200, "ok"}, again: true},
		{name: "HEAD", method: "HEAD", answer: ok + "Content-Length: 2\r\n\r\n", want: got{200, ""}, again: true},
		{name: "HEAD chunked", method: "HEAD", answer: ok + "Transfer-Encoding: chunked\r\n\r\n", want: got{200, ""}, again: true},
		{name: "HEAD until the end", method: "HEAD", answer: ok + "\r\n", want: got{200, ""}, again: true},
		{name: "304 with a length", answer: "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n", want: got{304, ""}, again: true},
		{name: "204 with a length", answer: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", want: got{204, ""}, again: true},
		{name: "204 with a body", answer: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", want: got{204, ""}},
		{name: "more than announced", answer: okAnswer + "HTTP/1.1 200 OK\r\n", want: got{200, "ok"}},
		{name: "long header", answer: ok + "X: " + long[:60<<10] + "\r\nContent-Length: 2\r\n\r\nok", want: got{200, "ok"}, again: true},
		{name: "long body", answer: ok + "Content-Length: 71680\r\n\r\n" + long, want: got{200, long}, again: true},

		{name: "nothing", ends: ended, fails: "unexpected EOF"},
		{name: "half a line", answer: "HTTP/1.1 20", ends: ended, fails: "unexpected EOF"},
		{name: "half a header", answer: ok + "Content-Length: 2\r\n", ends: ended, fails: "unexpected EOF"},
		{name: "half a body", answer: ok + "Content-Length: 3\r\n\r\nok", ends: ended, want: got{200, "ok"}, fails: "unexpected EOF"},
		{name: "half a chunk", answer: ok + "Transfer-Encoding: chunked\r\n\r\n3\r\nok", ends: ended, want: got{200, "ok"}, fails: "unexpected EOF"},
		{name: "no last chunk", answer: ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n", ends: ended, want: got{200, "ok"}, fails: "unexpected EOF"},
		{name: "TLS alert", answer: "\x15\x03\x01\x00\x02\x02\x46\r\n\r\n", fails: "status line"},
		{name: "HTTP/2", answer: "HTTP/2 200\r\n\r\n", fails: "status line"},
		{name: "HTTP/1.2", answer: "HTTP/1.2 200 OK\r\n\r\n", fails: "status line"},
		{name: "HTTP/0.9", answer: "<html>\n\n", fails: "status line"},
		{name: "empty line first", answer: "\r\n" + okAnswer, fails: "status line"},
		{name: "four digits", answer: "HTTP/1.1 2000 OK\r\n\r\n", fails: "code and reason"},
		{name: "code below 100", answer: "HTTP/1.1 099 No\r\n\r\n", fails: "code and reason"},
		{name: "no digits", answer: "HTTP/1.1 2OO OK\r\n\r\n", fails: "three digits"},
		{name: "CR in the reason", answer: "HTTP/1.1 200 O\rK\r\n\r\n", fails: "code and reason"},
		{name: "folded line", answer: ok + "X: a\r\n b\r\n\r\n", fails: "continues"},
		{name: "blank before the colon", answer: ok + "Content-Length : 2\r\n\r\nok", fails: "name and a colon"},
		{name: "no colon", answer: ok + "Content-Length\r\n\r\nok", fails: "name and a colon"},
		{name: "no name", answer: ok + ": x\r\n\r\nok", fails: "name and a colon"},
		{name: "NUL in a value", answer: ok + "X: a\x00b\r\n\r\n", fails: "control character"},
		{name: "CR in a value", answer: ok + "X: a\rContent-Length: 2\r\n\r\n", fails: "control character"},
		{name: "two lengths", answer: ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", fails: "Content-Lengths"},
		{name: "a length in two spellings", answer: ok + "Content-Length: 2\r\nContent-Length: 02\r\n\r\nok", fails: "Content-Lengths"},
		{name: "list of lengths", answer: ok + "Content-Length: 2, 2\r\n\r\nok", fails: "one number"},
		{name: "signed length", answer: ok + "Content-Length: +2\r\n\r\nok", fails: "one number"},
		{name: "negative length", answer: ok + "Content-Length: -2\r\n\r\nok", fails: "one number"},
		{name: "empty length", answer: ok + "Content-Length: \r\n\r\nok", fails: "one number"},
		{name: "huge length", answer: ok + "Content-Length: 9223372036854775807\r\n\r\nok", fails: "one number"},
		{name: "length and chunks", answer: ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", fails: "both"},
		{name: "other coding", answer: ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", fails: "Transfer-Encoding"},
		{name: "identity", answer: ok + "Transfer-Encoding: identity\r\n\r\nok", fails: "Transfer-Encoding"},
		{name: "chunked twice", answer: ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", fails: "Transfer-Encoding"},
		{name: "chunks in HTTP/1.0", answer: "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", fails: "HTTP/1.0"},
		{name: "chunk size of none", answer: ok + "Transfer-Encoding: chunked\r\n\r\n\r\n", want: got{200, ""}, fails: "size"},
		{name: "chunk size of letters", answer: ok + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", want: got{200, ""}, fails: "size"},
		{name: "signed chunk size", answer: ok + "Transfer-Encoding: chunked\r\n\r\n+2\r\nok\r\n", want: got{200, ""}, fails: "size"},
		{name: "huge chunk", answer: ok + "Transfer-Encoding: chunked\r\n\r\n1000000000000000\r\n", want: got{200, ""}, fails: "size"},
		{name: "chunk line in LF", answer: ok + "Transfer-Encoding: chunked\r\n\r\n2\nok\r\n0\r\n\r\n", want: got{200, ""}, fails: "LF alone"},
		{name: "chunk longer than its size", answer: ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nok\r\n0\r\n\r\n", want: got{200, "o"}, fails: "end a chunk"},
		{name: "endless extension", answer: ok + "Transfer-Encoding: chunked\r\n\r\n2;" + long, want: got{200, ""}, fails: "line of more than"},
		{name: "folded trailer", answer: ok + "Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n c\r\n\r\n", want: got{200, ""}, fails: "trailer"},
		{name: "endless trailer", answer: ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 20<<10), want: got{200, ""}, fails: "trailer"},
		{name: "endless header", answer: ok + strings.Repeat("X: "+long[:1<<10]+"\r\n", 66), fails: "more than 65536 bytes"},
		{name: "endless line", answer: ok + "X: " + long, fails: "more than 65536 bytes"},
		{name: "too many lines", answer: ok + strings.Repeat("X: y\r\n", 257) + "\r\n", fails: "257 header lines"},
		{name: "endless interim", answer: strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 6) + okAnswer, fails: "interim"},
		{name: "other protocol", answer: "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n", fails: "101"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(s *server, number int, conn net.Conn) {
				r := bufio.NewReader(conn)
				for first := true; s.readRequest(r) != nil; first = false {
					if number > 0 || !first {
						_, _ = io.WriteString(conn, okAnswer)
						continue
					}
					_, _ = io.WriteString(conn, tt.answer)
					if tt.ends {
						return
					}
				}
			})
			c := newClient(t, Options{})
			req, _ := post(t, t.Context(), s.url, "{}")
			if tt.method != "" {
				req.Method = tt.method
			}
			answer, trace, err := exchangeOnce(c, req, Shape{})
			if diff := cmp.Diff(tt.want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want one about %q", err, tt.fails)
			}
			if !trace.Connected || trace.Reused || trace.Written == 0 {
				t.Errorf("trace %+v", trace)
			}
			if again := mustExchange(t, c, s.url); again.Reused != tt.again {
				t.Errorf("connection used again: %v, want %v", again.Reused, tt.again)
			}
		})
	}
}

// understood is what a reader makes of an answer.
type understood struct {
	Status, Proto string
	Code          int
	Header        http.Header
	Length        int64
	Coding        []string
	Close         bool
	Body          string
	BodyErr       bool
}

// understand reads an answer to its end. Connection is left out: net/http removes "close" from the header, and a repeated length too.
func understand(r *http.Response) understood {
	r.Header.Del("Connection")
	if lengths := r.Header["Content-Length"]; len(lengths) > 1 {
		r.Header["Content-Length"] = lengths[:1]
	}
	body, err := io.ReadAll(r.Body)
	return understood{r.Status, r.Proto, r.StatusCode, r.Header, r.ContentLength, r.TransferEncoding, r.Close, string(body), err != nil}
}

// ours reads an answer with this package.
func ours(src io.Reader, method string) (understood, error) {
	a := new(answer)
	if err := a.read(&input{src: src}, defaultMaxHeadBytes, method); err != nil {
		return understood{}, err
	}
	return understand(&a.response), nil
}

// theirs reads an answer with net/http.
func theirs(src io.Reader, method string) (understood, error) {
	r := bufio.NewReader(src)
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			return understood{}, err
		}
		if resp.StatusCode >= 200 {
			return understand(resp), nil
		}
	}
}

// randomAnswer is a valid answer to a request with this method.
func randomAnswer(rng *rand.Rand, method string) []byte {
	var b bytes.Buffer
	for range rng.IntN(3) {
		b.WriteString("HTTP/1.1 103 Early Hints\r\nLink: </style>\r\n\r\n")
	}
	code := []int{200, 201, 202, 204, 301, 304, 400, 410, 429, 500, 503}[rng.IntN(11)]
	minor := min(rng.IntN(5), 1)
	fmt.Fprintf(&b, "HTTP/1.%d %d %s\r\n", minor, code, http.StatusText(code))
	data := pattern(rng.IntN(1 << rng.IntN(18)))
	lines := []string{}
	for range rng.IntN(12) {
		lines = append(lines, fmt.Sprintf("%s:%s%x%s", []string{"Date", "x-id", "SERVER", "Set-Cookie", "retry-after"}[rng.IntN(5)],
			strings.Repeat(" ", rng.IntN(3)), pattern(rng.IntN(40)), strings.Repeat("\t", rng.IntN(2))))
	}
	if rng.IntN(3) == 0 {
		lines = append(lines, "connection: "+[]string{"close", "keep-alive", "x, Close", "Keep-Alive, x"}[rng.IntN(4)])
	}
	framing := rng.IntN(3)
	switch {
	case framing == 0:
		lines = append(lines, fmt.Sprintf("Content-Length: %d", len(data)))
	case framing == 1 && minor == 1 && code != 204:
		lines = append(lines, "transfer-encoding: chunked")
	default:
		framing = 2
	}
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		b.WriteString(line + "\r\n")
	}
	b.WriteString("\r\n")
	switch {
	case method == http.MethodHead || code == 204 || code == 304:
	case framing == 1:
		for len(data) > 0 {
			n := 1 + rng.IntN(len(data))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, data[:n])
			data = data[n:]
		}
		b.WriteString("0\r\n\r\n")
	default:
		b.Write(data)
	}
	return b.Bytes()
}

// TestAnswersLikeNetHTTP compares what both make of valid answers, however they arrive.
func TestAnswersLikeNetHTTP(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 3000 {
		method := []string{http.MethodPost, http.MethodHead, http.MethodGet}[rng.IntN(3)]
		raw := randomAnswer(rng, method)
		want, err := theirs(bytes.NewReader(raw), method)
		if err != nil {
			t.Fatalf("net/http: %v\n%q", err, raw)
		}
		var src io.Reader = bytes.NewReader(raw)
		switch {
		case n%4 == 1 && len(raw) < 1<<10:
			src = iotest.OneByteReader(src)
		case n%4 == 2:
			src = iotest.HalfReader(src)
		case n%4 == 3:
			src = iotest.DataErrReader(src)
		}
		got, err := ours(src, method)
		if err != nil {
			t.Fatalf("%v\n%q", err, raw)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("answer %q (-net/http +got):\n%s", shortened(string(raw)), diff)
		}
	}
}

// FuzzAnswer holds the reader to this: what it accepts net/http accepts too, and understands in the same way.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		okAnswer, "HTTP/1.0 200\n\nbody", "HTTP/1.1 204 No Content\r\nA: b\r\na: c\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" + okAnswer,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nokok",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(randomAnswer(rng, http.MethodPost), false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, head bool) {
		method := http.MethodPost
		if head {
			method = http.MethodHead
		}
		got, err := ours(bytes.NewReader(raw), method)
		slow, slowErr := ours(iotest.OneByteReader(bytes.NewReader(raw)), method)
		if (err == nil) != (slowErr == nil) || !cmp.Equal(got, slow) {
			t.Fatalf("at once %+v, %v; byte by byte %+v, %v", got, err, slow, slowErr)
		}
		if err != nil || got.Header["Trailer"] != nil {
			return // net/http moves an announced trailer out of the header.
		}
		want, err := theirs(bytes.NewReader(raw), method)
		if err != nil {
			t.Fatalf("got %+v, but net/http: %v", got, err)
		}
		if got.BodyErr {
			want.Body, want.BodyErr = got.Body, true // We may be stricter, but not more lenient.
		}
		if got.Header.Get("Pragma") == "no-cache" && got.Header["Cache-Control"] == nil {
			delete(want.Header, "Cache-Control") // net/http adds it.
		}
		want.Status = got.Status // net/http removes blanks before the reason.
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-net/http +got):\n%s", diff)
		}
	})
}

// TestDrain closes bodies unread and sees whether the connection survives.
func TestDrain(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	big := strings.Repeat("x", drainBytes+1)
	for _, tt := range []struct {
		name, answer string
		again        bool
	}{
		{"small", okAnswer, true},
		{"chunked", ok + "Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", true},
		{"at the bound", ok + fmt.Sprintf("Content-Length: %d\r\n\r\n", drainBytes) + big[:drainBytes], true},
		{"too big", ok + fmt.Sprintf("Content-Length: %d\r\n\r\n", drainBytes+1) + big, false},
		{"too many chunks", ok + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", 2*len(big), big+big), false},
		{"broken chunk", ok + "Transfer-Encoding: chunked\r\n\r\nx\r\n", false},
		{"does not come", ok + "Content-Length: 2\r\n\r\no", false},
		{"until the end", ok + "\r\nok", false},
		{"said to close", ok + "Connection: close\r\nContent-Length: 2\r\n\r\nok", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, answering(tt.answer, forever))
			c := newClient(t, Options{})
			req, _ := post(t, t.Context(), s.url, "{}")
			resp, err := c.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
				t.Errorf("reading on: %v", err)
			}
			if got := len(c.idleConns()) == 1; got != tt.again {
				t.Errorf("connection kept: %v, want %v", got, tt.again)
			}
		})
	}
}
