package wire

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// arrival is a request as net/http's server sees it.
type arrival struct {
	Method, URI, Proto, Host string
	Header                   http.Header
	Length                   int64
	Coding                   []string
	Close                    bool
	Body                     string
}

// TestLikeNetHTTP sends random requests with this client and with net/http's: the server must see the same, and both clients the same answer.
func TestLikeNetHTTP(t *testing.T) {
	seen := make(chan arrival, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Header.Del("User-Agent") // net/http's client adds it.
		seen <- arrival{r.Method, r.RequestURI, r.Proto, r.Host, r.Header, r.ContentLength, r.TransferEncoding, r.Close, string(body)}
		answerLike(w, body)
	}))
	defer s.Close()
	c := newClient(t, Options{})
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	rng := rand.New(rand.NewPCG(5, 6))
	for n := range 1000 {
		newRequest := randomRequest(t, rng, s.URL)
		var arrivals [2]arrival
		var answers [2]understood
		for i, client := range []http.RoundTripper{transport, c} {
			resp, err := client.RoundTrip(newRequest())
			if err != nil {
				t.Fatalf("request %d with %T: %v", n, client, err)
			}
			arrivals[i] = <-seen
			resp.Header.Del("Date")
			answers[i] = understand(resp)
			_ = resp.Body.Close()
		}
		if diff := cmp.Diff(arrivals[0], arrivals[1]); diff != "" {
			t.Fatalf("request %d arrives (-net/http +got):\n%s", n, diff)
		}
		if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
			t.Fatalf("answer to request %d (-net/http +got):\n%s", n, diff)
		}
	}
}

// answerLike answers in as many ways as requests differ.
func answerLike(w http.ResponseWriter, body []byte) {
	switch len(body) % 5 {
	case 0:
		w.WriteHeader(http.StatusNoContent)
		return
	case 1:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
	case 2:
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Connection", "close")
	}
	half := len(body) / 2
	_, _ = w.Write(body[:half])
	if len(body)%3 == 0 {
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = w.Write(body[half:])
}

// randomRequest returns a function that makes the same request again and again.
func randomRequest(t *testing.T, rng *rand.Rand, url string) func() *http.Request {
	method := []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "post"}[rng.IntN(8)]
	url += []string{"", "/", "/a/b", "/a%2fb//c?x=y&%20", "/?", "/ü?q=ä#fragment", "//double", "/a b"}[rng.IntN(8)]
	header := http.Header{}
	for range rng.IntN(10) {
		name := []string{"X-A", "x-a", "Content-Type", "content-encoding", "X-Hub-Signature-256", "Cookie", "Accept"}[rng.IntN(7)]
		header[name] = append(header[name], fmt.Sprintf("%x", pattern(rng.IntN(50))))
	}
	data := pattern(1 + rng.IntN(1<<(1+rng.IntN(17))))
	hasBody, unknown := rng.IntN(3) > 0, rng.IntN(3) == 0
	closing, host := rng.IntN(10) == 0, []string{"", "shop.example", "shop.example:8080"}[rng.IntN(3)]
	return func() *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header, req.Close, req.Host = header.Clone(), closing, host
		if hasBody {
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		}
		if hasBody && unknown {
			req.ContentLength = -1
		}
		return req
	}
}
