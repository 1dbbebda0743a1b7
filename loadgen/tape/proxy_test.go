package tape

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/loadgen/provider"
)

// rawEndpoint takes one connection after the other and gives out every request's bytes: its head, and its body as it was framed.
func rawEndpoint(t *testing.T, answer string) (addr string, heads <-chan string, bodies <-chan []byte) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	head, body, ended := make(chan string, 1), make(chan []byte, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			for serveRaw(conn, answer, head, body) {
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-ended })
	return l.Addr().String(), head, body
}

// serveRaw reads one request.
func serveRaw(conn net.Conn, answer string, heads chan<- string, bodies chan<- []byte) bool {
	var head strings.Builder
	in := bufio.NewReaderSize(conn, 1)
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		c, err := in.ReadByte()
		if err != nil {
			return false
		}
		head.WriteByte(c)
	}
	req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(head.String()), in)))
	if err != nil {
		return false
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return false
	}
	heads <- head.String()
	bodies <- body
	_, err = io.WriteString(conn, answer)
	return err == nil
}

// headerLines are the lines of a head behind the first, sorted, names in canonical spelling.
func headerLines(head string) (first string, lines []string) {
	all := strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")
	for _, line := range all[1:] {
		name, value, _ := strings.Cut(line, ":")
		lines = append(lines, http.CanonicalHeaderKey(name)+": "+strings.TrimSpace(value))
	}
	slices.SortStableFunc(lines, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, ":", 2)[0], strings.SplitN(b, ":", 2)[0])
	})
	return all[0], lines
}

// randomRequest makes a request with headers and a body of arbitrary bytes, as its bytes on the wire.
func randomRequest(r *rand.Rand) (head string, body, framed []byte) {
	const token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!"
	text := func(alphabet string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	paths := []string{"/", "/webhooks/stripe", "//double//slash", "/a%2Fb/%7e?x=%41+b&y", "/q?", "/semi;colon?a=1;b=2&&c=%zz", `/quote"<>|`, "/d\xc3\xa9j\xc3\xa0"}
	var h strings.Builder
	fmt.Fprintf(&h, "%s %s HTTP/1.1\r\nhost: hooks.example.test\r\n", []string{"POST", "PUT", "PATCH", "DELETE", "REPORT"}[r.IntN(5)], paths[r.IntN(len(paths))])
	if r.IntN(2) == 0 {
		fmt.Fprintf(&h, "user-agent: %s\r\n", text(token, 9))
	}
	if r.IntN(3) == 0 {
		h.WriteString("X-Forwarded-For: 198.51.100.7\r\nForwarded: for=198.51.100.7\r\nVia: 1.1 front\r\n")
	}
	for i := range r.IntN(8) {
		value := text(token+" ,;=\"'()@/\t\x80\xff\xc3\xa9", r.IntN(60))
		fmt.Fprintf(&h, "X-%s-%d: %s\r\n", text(token, 1+r.IntN(12)), i/2, strings.TrimSpace(value))
	}
	body = make([]byte, r.IntN(3)*r.IntN(100_000))
	for i := range body {
		body[i] = byte(r.Uint32())
	}
	if r.IntN(2) == 0 {
		fmt.Fprintf(&h, "Content-Length: %d\r\n\r\n", len(body))
		return h.String(), body, body
	}
	h.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	var chunks bytes.Buffer
	for rest := body; len(rest) > 0; {
		n := min(len(rest), 1+r.IntN(5000))
		fmt.Fprintf(&chunks, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	chunks.WriteString("0\r\n\r\n")
	return h.String(), body, chunks.Bytes()
}

// TestForwardsUntouched compares what a socket sends to the proxy with what a socket receives behind it.
func TestForwardsUntouched(t *testing.T) {
	const answer = "HTTP/1.1 299 Fine By Us\r\nX-Twice: b\r\nX-Twice: a\r\nContent-Length: 5\r\n\r\nhello"
	addr, heads, bodies := rawEndpoint(t, answer)
	s := record(t, Config{Limit: 64 << 10}, "http://"+addr)
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		head, body, framed := randomRequest(r)
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(append([]byte(head), framed...)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%v, for\n%s", err, head)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		wantHeader := http.Header{"X-Twice": {"b", "a"}, "Content-Length": {"5"}}
		if resp.StatusCode != 299 || string(text) != "hello" || !cmp.Equal(wantHeader, resp.Header) {
			t.Fatalf("answer %d %q %v, for\n%s", resp.StatusCode, text, resp.Header, head)
		}
		_ = conn.Close()
		first, lines := headerLines(head)
		gotFirst, gotLines := headerLines(<-heads)
		if diff := cmp.Diff(first, gotFirst); diff != "" {
			t.Errorf("request line (-sent +received):\n%s", diff)
		}
		if diff := cmp.Diff(lines, gotLines); diff != "" {
			t.Errorf("headers (-sent +received):\n%s", diff)
		}
		if got := <-bodies; !bytes.Equal(body, got) {
			t.Errorf("body of %d bytes arrived as %d other bytes", len(body), len(got))
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if got := len(s.requests(t)); got != 200 {
		t.Errorf("%d requests recorded, want 200", got)
	}
}

// TestSignaturesHold sends a request of every provider through the proxy: what arrives is what was signed, to the byte.
func TestSignaturesHold(t *testing.T) {
	e := newEndpoint(t, nil)
	s := record(t, Config{Scrubber: NewScrubber()}, e.URL)
	c := client(t)
	for i, p := range provider.All() {
		d := delivery(p, uint64(i), s.url+"/webhooks/"+p.Name)
		send(t, c, s.url+"/webhooks/"+p.Name, d)
		got := e.all()[i]
		if !bytes.Equal(d.Body, got.body) {
			t.Errorf("%s: the body changed", p.Name)
		}
		for name := range d.Header {
			if diff := cmp.Diff(d.Header[name], got.header[name]); diff != "" {
				t.Errorf("%s: header %s (-sent +received):\n%s", p.Name, name, diff)
			}
		}
		if got.host != strings.TrimPrefix(s.url, "http://") {
			t.Errorf("%s: Host %q, want that of the sender", p.Name, got.host)
		}
		if verify, ok := verifiers()[p.Name]; ok && !verify(got.header, got.body, testSecret(p)) {
			t.Errorf("%s: the signature does not hold behind the proxy", p.Name)
		}
	}
	for i, r := range s.requests(t) {
		p := provider.All()[i]
		if r.Provider != p.Name || r.Status != 200 || r.Body.LeftOut {
			t.Errorf("recorded provider %q, status %d, left out %v, want %s, 200, false", r.Provider, r.Status, r.Body.LeftOut, p.Name)
		}
		for _, f := range r.Headers {
			if isSignature(f.Name) {
				t.Errorf("%s: the recording has %s", p.Name, f.Name)
			}
		}
	}
}

func TestProviderIsGuessed(t *testing.T) {
	for _, p := range provider.All() {
		d := delivery(p, 3, "")
		if got := guess("/webhooks/"+p.Name+"/eu?x=/", http.Header{}); got != p.Name {
			t.Errorf("by path: %q, want %q", got, p.Name)
		}
		got := guess("/in", d.Header)
		same := got == p.Name || len(habits()[p.Name].own) == 0 && got == "" || cmp.Equal(habits()[got].own, habits()[p.Name].own)
		if !same {
			t.Errorf("by headers: %q, want %q", got, p.Name)
		}
	}
	for path, want := range map[string]string{
		"/webhooks/acme": "acme", "/webhooks/8f3a99b1": "", "/webhooks/": "", "/": "", "/hooks/stripe": "",
	} {
		if got := guess(path, http.Header{"User-Agent": {"curl/8"}, "Accept": {"*/*"}}); got != want {
			t.Errorf("guess(%q) = %q, want %q", path, got, want)
		}
	}
}

func TestJoin(t *testing.T) {
	tests := []struct{ to, target, want string }{
		{"http://h", "/a", "/a"},
		{"http://h/", "/a?b", "/a?b"},
		{"http://h/base", "/a%2Fb?", "/base/a%2Fb?"},
		{"http://h/base/", "//a", "/base//a"},
		{"http://h", "//a?b=//", "//a?b=//"},
		{"http://h", "//a?", "//a?"},
		{"https://h/%41", "/x", "/%41/x"},
	}
	for _, tt := range tests {
		to, err := url.Parse(tt.to)
		if err != nil {
			t.Fatal(err)
		}
		u, err := join(to, tt.target)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.RequestURI(); got != tt.want || u.Host != "h" {
			t.Errorf("join(%s, %s): %s at %s, want %s at h", tt.to, tt.target, got, u.Host, tt.want)
		}
	}
}

func TestCheckEndpoint(t *testing.T) {
	for text, ok := range map[string]bool{
		"http://127.0.0.1:8080": true, "https://example.com/base/": true, "ftp://x": false, "127.0.0.1:80": false, "/x": false,
		"http://": false, "http://u:p@x": false, "http://x?q": false, "http://x/?": false, "http://x#f": false,
	} {
		u, err := url.Parse(text)
		if err != nil {
			u = nil
		}
		if err := CheckEndpoint(u); (err == nil) != ok {
			t.Errorf("CheckEndpoint(%s) = %v, want ok %v", text, err, ok)
		}
	}
}
