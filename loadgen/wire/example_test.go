package wire_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"floodproof/loadgen/wire"
)

// A receiver must not act on half a webhook, and must get the whole one when the sender tries again.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			return // half a body: nobody waits for an answer
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer server.Close()
	client := wire.New(wire.Options{MaxIdle: 64})
	defer client.CloseIdleConnections()

	const body = `{"id":"evt_1"}`
	for _, shape := range []wire.Shape{{Cut: true, CutAfter: 5}, {}} {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		req.Header = http.Header{"x-event-id": {"evt_1"}} // goes out in lower case
		var trace wire.Trace
		resp, err := client.Do(req, shape, &trace)
		if errors.Is(err, wire.ErrCut) {
			fmt.Println("cut, something written:", trace.Written > 0)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Status)
		_ = resp.Body.Close()
	}
	// Output:
	// cut, something written: true
	// 202 Accepted
}
