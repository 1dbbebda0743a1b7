package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// TestRestart: what was answered is there after a restart, deletions are too, and no old handle counts.
func TestRestart(t *testing.T) {
	e := start(t)
	q := e.create("restart", nil)
	for i := range 5 {
		e.send(q, fmt.Sprint(i))
	}
	got := e.want(q, "0", "1", "2", "3", "4")
	if err := e.remove(q, got[1]); err != nil {
		t.Fatal(err)
	}
	e.clock.pass(time.Millisecond)
	e.reopen()
	q = e.create("restart", nil)
	if err := e.remove(q, got[2]); err != nil {
		t.Fatal(err)
	}
	again := e.want(q, "0", "2", "3", "4") // all visible at once
	for _, m := range again {
		if err := e.remove(q, m); err != nil {
			t.Fatal(err)
		}
	}
	e.reopen()
	q = e.create("restart", nil)
	e.want(q)
}

// files are those of the log, in their order.
func files(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestTornWrite cuts the log off at each byte of its last record: whatever a crash has left of it, everything before is there, and the log goes on.
func TestTornWrite(t *testing.T) {
	e := start(t)
	q := e.create("torn", nil)
	e.send(q, "first")
	path := files(t, e.dir)[0]
	whole := e.store.journal.last().size
	e.send(q, "last")
	e.stop()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := whole; cut < int64(len(text)); cut++ {
		if err := os.WriteFile(path, text[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		e.open()
		q = e.create("torn", nil)
		e.want(q, "first")
		e.send(q, "after")
		e.want(q, "after")
		e.reopen()
		q = e.create("torn", nil)
		e.want(q, "first", "after")
		e.stop()
	}
	e.open()
}

// TestDamagedLog: damage in the middle is not the end of a log, and is not passed over.
func TestDamagedLog(t *testing.T) {
	e := start(t)
	e.store.journal.limit = 1
	q := e.create("damaged", nil)
	e.send(q, "first", "second")
	e.stop()
	path := files(t, e.dir)[0]
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)-2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := openStore(e.dir, true, time.Now); err == nil {
		_ = st.close()
		t.Error("a damaged log was opened")
	}
	text[len(text)-2] ^= 1
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	e.open()
}

// TestTrim: files go when nothing in them is needed, and not before: neither for a message, nor for a deduplication id; and queues are never forgotten.
func TestTrim(t *testing.T) {
	e := start(t)
	e.store.journal.limit = 1 // each group of records begins a file
	standard, line := e.create("standard", nil), e.create("line.fifo", fifo())
	e.send(standard, "held")
	held := e.want(standard, "held")[0]
	for i := range 10 {
		e.send(standard, fmt.Sprint(i))
		if err := e.remove(standard, e.want(standard, fmt.Sprint(i))[0]); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(files(t, e.dir)); got < 20 {
		t.Errorf("while the first message is there: %d files, want all", got)
	}
	if err := e.remove(standard, held); err != nil {
		t.Fatal(err)
	}
	id := e.ordered(line, "a", "known")
	if err := e.remove(line, e.want(line, "known")[0]); err != nil {
		t.Fatal(err)
	}
	e.send(standard, "one more")
	if got := len(files(t, e.dir)); got > 5 {
		t.Errorf("after everything was deleted: %d files, want those since the last message that is known", got)
	}
	e.reopen()
	e.store.journal.limit = 1
	standard, line = e.create("standard", nil), e.create("line.fifo", fifo())
	if again := e.ordered(line, "a", "known"); again != id {
		t.Errorf("a known message: got %s, want %s", again, id)
	}
	e.want(standard, "one more")
	e.clock.pass(5 * time.Minute)
	for _, m := range e.want(standard, "one more") {
		if err := e.remove(standard, m); err != nil {
			t.Fatal(err)
		}
	}
	e.send(standard, "last")
	e.send(standard, "very last")
	if got := len(files(t, e.dir)); got > 3 {
		t.Errorf("five minutes later: %d files", got)
	}
	e.reopen()
	if found := len(e.store.queues); found != 2 {
		t.Errorf("after all: %d queues, want 2", found)
	}
	if e.ordered(e.create("line.fifo", fifo()), "a", "known") == id {
		t.Error("a message is known after five minutes")
	}
}

func FuzzReadRecord(f *testing.F) {
	for _, r := range []record{
		{op: opQueue, queue: 1, at: 5, name: "q", settings: map[string]string{"a": "b"}},
		{op: opSend, queue: 1, number: 2, at: 6, message: message{id: "i", body: "b", group: "g", dedup: "d", until: 7, attributes: []attribute{{"n", "String", "v"}}}},
		{op: opDelete, queue: 1, number: 2}, {op: opNumber, number: 1 << 40},
	} {
		f.Add(r.append(nil))
	}
	f.Add([]byte{byte(opSend), 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRecord(b)
		if err != nil {
			return
		}
		again, err := readRecord(r.append(nil))
		if err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("read %+v, and after writing it %+v, %v", r, again, err)
		}
		if body, err := readFrame(bytes.NewReader(b)); err == nil && len(body) > len(b) {
			t.Errorf("a frame of %d bytes in %d", len(body), len(b))
		}
	})
}
