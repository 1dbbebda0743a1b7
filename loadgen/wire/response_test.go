package wire

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRecycle sends requests one after the other to a server whose answers change, and gives each response back: none may show anything of one before.
func TestRecycle(t *testing.T) {
	answers := []string{
		okAnswer,
		okAnswer,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno!\r\n0\r\n\r\n",
		"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nno!!\r\n0\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 204 No Content\r\nDate: today\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" + okAnswer,
		"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 1\r\n\r\n.",
		okAnswer,
	}
	s := serve(t, func(s *server, _ int, conn net.Conn) {
		r := bufio.NewReader(conn)
		for _, answer := range answers {
			if s.readRequest(r) == nil {
				return
			}
			if _, err := io.WriteString(conn, answer); err != nil {
				return
			}
		}
	})
	c := newClient(t, Options{})
	for i, answer := range answers {
		req, _ := post(t, t.Context(), s.url, "{}")
		resp, err := c.RoundTrip(req)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		want, err := theirs(strings.NewReader(answer), http.MethodPost)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, understand(&http.Response{
			Status: resp.Status, StatusCode: resp.StatusCode, Proto: resp.Proto, Header: resp.Header.Clone(), Body: resp.Body,
			ContentLength: resp.ContentLength, TransferEncoding: resp.TransferEncoding, Close: resp.Close,
		})); diff != "" {
			t.Errorf("answer %d (-want +got):\n%s", i, diff)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		Recycle(resp)
	}
	if accepted := s.accepted.Load(); accepted != 1 {
		t.Errorf("%d connections, want 1", accepted)
	}
}

// TestRecycleOthers: what is not over and what is not a Client's stays what it is.
func TestRecycleOthers(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	req, _ := post(t, t.Context(), s.url, "{}")
	resp, err := c.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	Recycle(resp)
	Recycle(&http.Response{Body: http.NoBody})
	Recycle(new(http.Response))
	if body, err := io.ReadAll(resp.Body); string(body) != "ok" || err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, body %q, %v, want 200, ok", resp.StatusCode, body, err)
	}
}
