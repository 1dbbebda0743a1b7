package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"floodproof/chaos/proxy"
)

// answer answers each line with its own text in capitals, and counts what it answered.
func answer(n *atomic.Int64) func(net.Conn) {
	return func(c net.Conn) {
		for lines := bufio.NewScanner(c); lines.Scan(); {
			n.Add(1)
			if _, err := io.WriteString(c, strings.ToUpper(lines.Text())+"\n"); err != nil {
				return
			}
		}
	}
}

func TestCut(t *testing.T) {
	tests := map[string]struct {
		cut   proxy.Cut
		asked []string // one after the other
		got   []string // what comes, the last before the end
	}{
		"nothing of it":                  {proxy.Cut{}, []string{"alpha"}, []string{""}},
		"the first byte":                 {proxy.Cut{Byte: 1}, []string{"alpha"}, []string{"A"}},
		"all but the last byte":          {proxy.Cut{Byte: 5}, []string{"alpha"}, []string{"ALPHA"}},
		"all of it, and then the end":    {proxy.Cut{Byte: 6}, []string{"alpha"}, []string{"ALPHA\n"}},
		"the third reply":                {proxy.Cut{Byte: 2, Reply: 3}, []string{"alpha", "beta", "gamma"}, []string{"ALPHA\n", "BETA\n", "GA"}},
		"the first that is long enough":  {proxy.Cut{Byte: 6}, []string{"a", "be", "gamma"}, []string{"A\n", "BE\n", "GAMMA\n"}},
		"the third, or who comes after":  {proxy.Cut{Byte: 4, Reply: 2}, []string{"alpha", "be", "gamma"}, []string{"ALPHA\n", "BE\n", "GAMM"}},
		"with a reset, before the reply": {proxy.Cut{Reset: true}, []string{"alpha"}, []string{""}},
	}
	for name, tt := range tests {
		for _, warm := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/warm %t", name, warm), func(t *testing.T) {
				var answered atomic.Int64
				s := newServer(t, answer(&answered))
				p := newProxy(t, proxy.Options{Upstream: s.addr})
				c := dial(t, p.Addr())
				if warm { // The connection has had replies before the condition comes; they do not count.
					for range 5 {
						send(t, c, "warming up\n")
						want(t, c, "WARMING UP\n")
					}
				}
				answered.Store(0)
				lift := impose(t, p, proxy.Condition{Direction: proxy.Down, Cut: &tt.cut})
				last := len(tt.asked) - 1
				for i, line := range tt.asked {
					send(t, c, line+"\n")
					if i < last {
						want(t, c, tt.got[i])
					}
				}
				wantEnd(t, c, tt.got[last], tt.cut.Reset)
				if n := answered.Load(); int(n) != len(tt.asked) {
					t.Errorf("the server did %d of %d: a cut must not come before the work is done", n, len(tt.asked))
				}
				if met := lift(); met.Cuts != 1 || met.Connections != 1 {
					t.Errorf("met %+v, want one cut", met)
				}
			})
		}
	}
}

// TestCutUnderShape: the byte is counted where it leaves, whatever else holds.
func TestCutUnderShape(t *testing.T) {
	for name, c := range map[string]proxy.Condition{"sliced": {Slice: 2}, "slow": {Rate: 1000}, "late": {Delay: 1000}} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, answer(&atomic.Int64{}))
			p := newProxy(t, proxy.Options{Upstream: s.addr})
			conn := dial(t, p.Addr())
			impose(t, p, c)
			impose(t, p, proxy.Condition{Direction: proxy.Down, Cut: &proxy.Cut{Byte: 7}})
			send(t, conn, "abcdefghijkl\n")
			wantEnd(t, conn, "ABCDEFG", false)
		})
	}
}

func TestCutRequest(t *testing.T) {
	p, client, far := pair(t)
	impose(t, p, proxy.Condition{Direction: proxy.Up, Cut: &proxy.Cut{Byte: 10}})
	send(t, client, "POST /webhooks HTTP/1.1\r\n")
	wantEnd(t, far, "POST /webh", false)
}

func TestCutSoManyTimes(t *testing.T) {
	s := newServer(t, answer(&atomic.Int64{}))
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	lift := impose(t, p, proxy.Condition{Direction: proxy.Down, Cut: &proxy.Cut{Byte: 1, Times: 2}})
	for range 2 {
		c := dial(t, p.Addr())
		send(t, c, "one\n")
		wantEnd(t, c, "O", false)
	}
	c := dial(t, p.Addr())
	for range 3 {
		send(t, c, "two\n")
		want(t, c, "TWO\n")
	}
	if met := lift(); met.Cuts != 2 {
		t.Errorf("met %+v, want two cuts", met)
	}
}

func TestACutThatNobodyMeets(t *testing.T) {
	s := newServer(t, answer(&atomic.Int64{}))
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	lift := impose(t, p, proxy.Condition{Direction: proxy.Down, Cut: &proxy.Cut{Byte: 100}})
	c := dial(t, p.Addr())
	send(t, c, "short\n")
	want(t, c, "SHORT\n")
	if met := lift(); met != (proxy.Met{}) {
		t.Errorf("met %+v, want nothing", met)
	}
}

// TestCutHTTP is what the cut is for: the event is taken, and its sender cannot know.
func TestCutHTTP(t *testing.T) {
	var taken atomic.Int64
	s := newServer(t, func(c net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err == nil {
			taken.Add(1)
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	})
	p := newProxy(t, proxy.Options{Upstream: s.addr})
	impose(t, p, proxy.Condition{Direction: proxy.Down, Cut: &proxy.Cut{Byte: 16}}) // after "HTTP/1.1 200 OK\r"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.Addr()+"/webhooks/stripe", io.NopCloser(strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err == nil {
		response.Body.Close()
		t.Errorf("got status %d, want no answer", response.StatusCode)
	}
	if n := taken.Load(); n != 1 {
		t.Errorf("the server took %d events, want 1", n)
	}
}
