package wire

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// TestRequestBytes sends requests and compares every byte.
func TestRequestBytes(t *testing.T) {
	body := func(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
	for _, tt := range []struct {
		name  string
		path  string
		alter func(*http.Request)
		shape Shape
		want  string
	}{
		{"GET", "/", nil, Shape{}, "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"no path", "", nil, Shape{}, "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"no method", "/", func(r *http.Request) { r.Method = "" }, Shape{}, "GET / HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"query and escapes", "/a%2Fb/%C3%BC?x=%20&y", nil, Shape{}, "GET /a%2Fb/%C3%BC?x=%20&y HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"forced query", "/?", nil, Shape{}, "GET /? HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"opaque", "/", func(r *http.Request) { r.URL.Opaque = "/as/is%zz" }, Shape{}, "GET /as/is%zz HTTP/1.1\r\nHost: HOST\r\n\r\n"},
		{"other host", "/", func(r *http.Request) { r.Host = "Shop.example" }, Shape{}, "GET / HTTP/1.1\r\nHost: Shop.example\r\n\r\n"},
		{"address with a zone", "/", func(r *http.Request) { r.Host = "[fe80::1%25en0]:80" }, Shape{}, "GET / HTTP/1.1\r\nHost: [fe80::1]:80\r\n\r\n"},
		{"names as given, in order, repeated", "/", func(r *http.Request) {
			r.Header = http.Header{"x-b": {"1", "2"}, "X-a": {"\t3 "}, "X-GitHub-Event": {"push"}, "user-agent": {""}}
		}, Shape{}, "GET / HTTP/1.1\r\nHost: HOST\r\nX-GitHub-Event: push\r\nX-a: \t3 \r\nuser-agent: \r\nx-b: 1\r\nx-b: 2\r\n\r\n"},
		{"close", "/", func(r *http.Request) { r.Close = true }, Shape{}, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n"},
		{"close said already", "/", func(r *http.Request) { r.Close, r.Header = true, http.Header{"connection": {"Close"}} }, Shape{},
			"GET / HTTP/1.1\r\nHost: HOST\r\nconnection: Close\r\n\r\n"},
		{"empty POST", "/", func(r *http.Request) { r.Method = "POST" }, Shape{}, "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
		{"POST of nothing", "/", func(r *http.Request) { r.Method, r.Body = "POST", body("") }, Shape{},
			"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 0\r\n\r\n"},
		{"POST", "/", func(r *http.Request) { r.Method, r.Body, r.ContentLength = "POST", body("{}"), 2 }, Shape{},
			"POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 2\r\n\r\n{}"},
		{"lower case", "/", func(r *http.Request) { r.Method, r.Close, r.Body, r.ContentLength = "POST", true, body("{}"), 2 }, Shape{LowerCase: true},
			"POST / HTTP/1.1\r\nhost: HOST\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"},
		{"HTTP/1.0", "/", func(r *http.Request) { r.Method, r.Body, r.ContentLength = "POST", body("{}"), 2 }, Shape{HTTP10: true},
			"POST / HTTP/1.0\r\nHost: HOST\r\nContent-Length: 2\r\n\r\n{}"},
		{"unknown length", "/", func(r *http.Request) { r.Method, r.Body = "POST", body("{}") }, Shape{},
			"POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
		{"chunks of an empty body", "/", func(r *http.Request) { r.Method, r.Body, r.ContentLength = "POST", body(""), -1 }, Shape{},
			"POST / HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"chunked though known", "/", func(r *http.Request) {
			r.Method, r.Body, r.ContentLength, r.TransferEncoding = "PUT", body("0123456789abcdef"), 16, []string{"chunked"}
		}, Shape{LowerCase: true}, "PUT / HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wire := make(chan string, 1)
			s := serve(t, readToEnd(wire))
			address := strings.TrimPrefix(strings.TrimSuffix(s.url, "/webhooks/acme"), "http://")
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.alter != nil {
				tt.alter(req)
			}
			tt.shape.Abandon = true
			var trace Trace
			if _, err := newClient(t, Options{}).Do(req, tt.shape, &trace); !errors.Is(err, ErrAbandoned) {
				t.Fatalf("error %v", err)
			}
			got := <-wire
			if diff := cmp.Diff(strings.Replace(tt.want, "HOST", address, 1), got); diff != "" {
				t.Errorf("bytes (-want +got):\n%s", diff)
			}
			if want := (Trace{Connected: true, Written: int64(len(got))}); trace != want {
				t.Errorf("trace %+v, want %+v", trace, want)
			}
		})
	}
}

// TestLargeBodies sends bodies of every length around the size of a block, and one as large as providers send.
func TestLargeBodies(t *testing.T) {
	type arrived struct {
		length int64
		coding []string
		sum    uint32
	}
	seen := make(chan arrived, 1)
	s := serve(t, func(s *server, _ int, conn net.Conn) {
		readBodies(conn, func(length int64, coding []string, sum uint32) { seen <- arrived{length, coding, sum} })
	})
	c := newClient(t, Options{})
	sizes := []int{1, 4096, 25 << 20}
	for around := blockBytes - 200; around < blockBytes+50; around += 7 {
		sizes = append(sizes, around)
	}
	for _, size := range sizes {
		for _, unknown := range []bool{false, true} {
			data := pattern(size)
			req, closed := post(t, t.Context(), s.url, string(data))
			want := arrived{int64(size), nil, checksum(data)}
			if unknown {
				req.ContentLength = -1
				want.length, want.coding = -1, []string{"chunked"}
			}
			answer, _, err := exchangeOnce(c, req, Shape{})
			if err != nil || answer.Status != http.StatusOK || !closed.closed {
				t.Fatalf("%d bytes: %+v, %v; body closed: %v", size, answer, err, closed.closed)
			}
			if diff := cmp.Diff(want, <-seen, cmp.AllowUnexported(arrived{})); diff != "" {
				t.Errorf("%d bytes (-want +got):\n%s", size, diff)
			}
		}
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

// TestRefusedRequests sends what must not be sent: nothing may even connect.
func TestRefusedRequests(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	for _, tt := range []struct {
		name  string
		alter func(*http.Request)
		shape Shape
		want  string
	}{
		{"line end in a value", func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} }, Shape{}, "header X-A"},
		{"LF in a value", func(r *http.Request) { r.Header["X-A"] = []string{"a\nb"} }, Shape{}, "header X-A"},
		{"NUL in a value", func(r *http.Request) { r.Header["X-A"] = []string{"a\x00"} }, Shape{}, "header X-A"},
		{"line end in a name", func(r *http.Request) { r.Header["X-A\r\nX-B"] = []string{"a"} }, Shape{}, "is not a name"},
		{"empty name", func(r *http.Request) { r.Header[""] = []string{"a"} }, Shape{}, "is not a name"},
		{"name beyond ASCII", func(r *http.Request) { r.Header["X-Ü"] = []string{"a"} }, Shape{}, "is not a name"},
		{"own length", func(r *http.Request) { r.Header["content-length"] = []string{"5"} }, Shape{}, "content-length: the client writes it"},
		{"own coding", func(r *http.Request) { r.Header["Transfer-Encoding"] = nil }, Shape{}, "the client writes it"},
		{"own host", func(r *http.Request) { r.Header["HOST"] = nil }, Shape{}, "the client writes it"},
		{"method", func(r *http.Request) { r.Method = "PO ST" }, Shape{}, "method"},
		{"CONNECT", func(r *http.Request) { r.Method = "CONNECT" }, Shape{}, "CONNECT"},
		{"space in the query", func(r *http.Request) { r.URL.RawQuery = "a b" }, Shape{}, "space"},
		{"line end in the opaque part", func(r *http.Request) { r.URL.Opaque = "/x\r\n" }, Shape{}, "control character"},
		{"line end in the host", func(r *http.Request) { r.Host = "a\r\nb" }, Shape{}, "host"},
		{"host beyond ASCII", func(r *http.Request) { r.Host = "münchen.example" }, Shape{}, "xn--"},
		{"scheme", func(r *http.Request) { r.URL.Scheme = "ftp" }, Shape{}, "scheme"},
		{"no URL", func(r *http.Request) { r.URL = nil }, Shape{}, "url"},
		{"no host", func(r *http.Request) { r.URL = &url.URL{Scheme: "http", Path: "/"} }, Shape{}, "no host"},
		{"trailer", func(r *http.Request) { r.Trailer = http.Header{"X": nil} }, Shape{}, "trailer"},
		{"coding", func(r *http.Request) { r.TransferEncoding = []string{"gzip"} }, Shape{}, "gzip"},
		{"length without body", func(r *http.Request) { r.Body = nil }, Shape{}, "without a body"},
		{"chunks in HTTP/1.0", func(r *http.Request) { r.ContentLength = -1 }, Shape{HTTP10: true}, "ContentLength"},
		{"body too short", func(r *http.Request) { r.ContentLength = 5 }, Shape{}, "3 bytes short"},
		{"body too long", func(r *http.Request) { r.ContentLength = 1 }, Shape{}, "longer"},
		{"body fails", func(r *http.Request) { r.Body = io.NopCloser(iotest.ErrReader(io.ErrClosedPipe)) }, Shape{}, io.ErrClosedPipe.Error()},
		{"body of unknown length fails", func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(iotest.ErrReader(io.ErrClosedPipe)), 0
		}, Shape{}, io.ErrClosedPipe.Error()},
		{"negative cut", nil, Shape{Cut: true, CutAfter: -1}, "cut"},
		{"forgotten cut", nil, Shape{CutAfter: 1}, "set Cut"},
		{"negative pause", nil, Shape{SlowEvery: -1}, "slow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, closed := post(t, t.Context(), s.url, "{}")
			if tt.alter != nil {
				tt.alter(req)
			}
			body := req.Body
			answer, trace, err := exchangeOnce(newClient(t, Options{}), req, tt.shape)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, error %v, want one about %q", answer, err, tt.want)
			}
			if trace != (Trace{}) {
				t.Errorf("trace %+v, want a zero one", trace)
			}
			if body == closed && !closed.closed {
				t.Error("the body was not closed")
			}
		})
	}
	if n := s.accepted.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}
