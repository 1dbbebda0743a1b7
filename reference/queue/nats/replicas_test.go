package nats

import (
	"context"
	"errors"
	"os"
	"testing"

	client "github.com/nats-io/nats.go"

	"floodproof/reference/queue/server"
)

// TestReadsAreAsNewAsWhatWasSeen: an answer from a replica that is behind is none, also if it is that there is nothing.
func TestReadsAreAsNewAsWhatWasSeen(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Start(t.Context(), server.NATS(program, "nats-server"), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	q, err := Open(t.Context(), Options{URL: s.Address()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	l := q.link
	store := func(subject string) uint64 {
		t.Helper()
		var ack struct {
			Seq uint64 `json:"seq"`
		}
		if err := l.request(t.Context(), &client.Msg{Subject: q.subjects.prefix + subject}, &ack); err != nil {
			t.Error(err)
		}
		return ack.Seq
	}
	if err := l.mark(t.Context(), q.subjects.mark()); err != nil {
		t.Fatal(err)
	}
	last := store("x.there")
	there, nothing := []string{q.subjects.prefix + "x.there"}, []string{q.subjects.prefix + "x.nothing"}
	l.saw(last)
	l.saw(1) // what is older changes nothing
	for want, filters := range [][]string{nothing, there} {
		if found, err := l.last(t.Context(), filters); err != nil || len(found) != want {
			t.Errorf("%s: found %v, error %v, want %d", filters, found, err, want)
		}
	}
	l.saw(last + 1) // as if another replica had said so
	for _, filters := range [][]string{there, nothing} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*freshPause)
		defer cancel()
		if found, err := l.last(ctx, filters); !errors.Is(err, errStale) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s of a replica that is behind: found %v, error %v", filters, found, err)
		}
	}
	caughtUp := make(chan struct{})
	go func() {
		defer close(caughtUp)
		store("x.later")
	}()
	if found, err := l.last(t.Context(), there); err != nil || len(found) != 1 {
		t.Errorf("when it has caught up: found %v, error %v", found, err)
	}
	<-caughtUp
}
