package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"floodproof/loadgen/provider"
)

// raws is the limit of what Go and this machine can do: the same signed requests, each written to a socket with one call and its answer taken with one, with no schedule, no
// books, no time-out and no HTTP beyond the bytes. Only as fast as it can.
func raws(ctx context.Context, l load) (figures, error) {
	to, err := url.Parse(l.to)
	if err != nil {
		return figures{}, err
	}
	var next atomic.Int64
	var f figures
	m := newMeter()
	group, ctx := errgroup.WithContext(ctx)
	for range l.inFlight {
		group.Go(func() error { return raw(ctx, l, to, &next) })
	}
	err = group.Wait()
	m.done(&f, l.count)
	return f, err
}

// raw sends over one connection until all are sent.
func raw(ctx context.Context, l load, to *url.URL, next *atomic.Int64) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", to.Host)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	req := provider.Request{Header: make(http.Header, 8)}
	out, answer := make([]byte, 0, 4096), make([]byte, 4096)
	for {
		n := next.Add(1)
		if n > int64(l.count) {
			return nil
		}
		req.Body = req.Body[:0]
		e := provider.Event{Number: uint32(n), Key: uint64(n), Draw: uint64(n), ResourceKey: uint64(n), ResourceDraw: uint64(n), Version: 1}
		l.from.Render(&req, provider.Delivery{Key: uint64(n), Events: []provider.Event{e}, Attempt: 1})
		l.from.Sign(&req, provider.Signing{Secrets: []string{secret}, URL: l.to, Now: time.Now()})
		out = fmt.Appendf(out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\n", to.RequestURI(), to.Host)
		for name, values := range req.Header {
			out = append(append(append(append(out, name...), ": "...), values[0]...), "\r\n"...)
		}
		out = strconv.AppendInt(append(out, "Content-Length: "...), int64(len(req.Body)), 10)
		out = append(append(out, "\r\n\r\n"...), req.Body...)
		if _, err := conn.Write(out); err != nil {
			return err
		}
		got, err := conn.Read(answer)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(answer[:got], []byte("HTTP/1.1 200 ")) || !bytes.Contains(answer[:got], []byte("\r\n\r\n")) {
			return errors.New("the server did not say 200 in one piece")
		}
	}
}
