package harness

import (
	"bytes"
	"errors"
	"testing"
)

// slowDisk is a file that waits until it is let go, and fails if it is full.
type slowDisk struct {
	bytes.Buffer
	let  chan struct{}
	full error
}

func (d *slowDisk) Write(p []byte) (int, error) {
	<-d.let
	if d.full != nil {
		return 0, d.full
	}
	return d.Buffer.Write(p)
}

func (d *slowDisk) Close() error { return nil }

func TestWriteBehindDoesNotWaitForTheDisk(t *testing.T) {
	d := &slowDisk{let: make(chan struct{})}
	b := writeBehind(d)
	block := []byte("one ")
	for range 3 {
		if _, err := b.Write(block); err != nil { // would hang here if it waited
			t.Fatal(err)
		}
		copy(block, "two ") // the caller may use its memory again
	}
	close(d.let)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := d.String(), "one two two "; got != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}

func TestWriteBehindReportsAFullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	d := &slowDisk{let: make(chan struct{}), full: full}
	close(d.let)
	b := writeBehind(d)
	if _, err := b.Write([]byte("x")); err != nil && !errors.Is(err, full) {
		t.Errorf("first Write: %v, want nil or %v", err, full)
	}
	if err := b.Close(); !errors.Is(err, full) {
		t.Errorf("Close: %v, want %v", err, full)
	}
}
