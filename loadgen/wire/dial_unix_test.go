//go:build unix

package wire

import (
	"errors"
	"syscall"
	"testing"
)

// addrNotAvailable is what the system says about a local address that is none.
const addrNotAvailable = syscall.EADDRNOTAVAIL

// TestOutOfDescriptors lets the process have no more files.
func TestOutOfDescriptors(t *testing.T) {
	s := serve(t, answering(okAnswer, forever))
	c := newClient(t, Options{})
	mustExchange(t, c, s.url) // It opens what the runtime needs for a connection.
	c.CloseIdleConnections()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 1
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	req, _ := post(t, t.Context(), s.url, "{}")
	_, trace, err := exchangeOnce(c, req, Shape{})
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) || trace != (Trace{}) {
		t.Errorf("error %v, trace %+v, want %v", err, trace, syscall.EMFILE)
	}
	mustExchange(t, c, s.url)
}
