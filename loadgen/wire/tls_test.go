package wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestTLS speaks with a server that prefers HTTP/2, over and over on one connection.
func TestTLS(t *testing.T) {
	var accepted atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 1 {
			t.Errorf("request came as %s", r.Proto)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}))
	s.EnableHTTP2 = true
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			accepted.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	config := &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}
	c := newClient(t, Options{TLS: config})
	data := pattern(300_000)
	for n, shape := range []Shape{{}, {}, {SlowBytes: 100_000, SlowEvery: time.Millisecond}, {Deadline: time.Now().Add(time.Hour)}, {}} {
		req, _ := post(t, t.Context(), s.URL, string(data))
		answer, trace, err := exchangeOnce(c, req, shape)
		if err != nil || answer.Status != http.StatusOK || !bytes.Equal([]byte(answer.Body), data) {
			t.Fatalf("request %d: status %d, %d bytes, %v", n, answer.Status, len(answer.Body), err)
		}
		if trace.Reused != (n > 0) || trace.Written <= int64(len(data)) {
			t.Errorf("request %d: trace %+v, want more than the body's bytes written", n, trace)
		}
	}
	s.CloseClientConnections()
	awaitStale(t, c)
	req, _ := post(t, t.Context(), s.URL, "again")
	if answer, trace, err := exchangeOnce(c, req, Shape{HTTP10: true}); err != nil || answer.Body != "again" || trace.Reused {
		t.Errorf("got %+v, %v, trace %+v", answer, err, trace)
	}
	if n := accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	if config.ServerName != "" || len(config.NextProtos) != 1 {
		t.Errorf("the caller's configuration was changed: %+v", config.NextProtos)
	}
}

// TestUntrusted does not speak to a server that shows a certificate of nobody we know.
func TestUntrusted(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // It complains about us.
	s.StartTLS()
	defer s.Close()
	req, _ := post(t, t.Context(), s.URL, "{}")
	_, trace, err := exchangeOnce(newClient(t, Options{}), req, Shape{})
	var unknown *tls.CertificateVerificationError
	if !errors.As(err, &unknown) || trace != (Trace{}) {
		t.Errorf("error %v, trace %+v, want an unknown certificate", err, trace)
	}
}
