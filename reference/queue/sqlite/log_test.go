package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"floodproof/reference/queue"
)

func openTest(t *testing.T, dir string) *Queue {
	t.Helper()
	q, err := Open(t.Context(), dir, Options{Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return q
}

// vanish ends a handle as a SIGKILL would: nothing is indexed, no file is cut, and the kernel gives its locks back.
func (q *Queue) vanish(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.calls.Wait()
	close(q.intake.calls)
	<-q.intake.stopped
	errs := []error{q.intake.gate.close(), q.indexer.close()}
	if q.intake.file != nil {
		errs = append(errs, q.intake.file.Close())
	}
	errs = append(errs, q.writer.close(), q.log.close(), q.checkpoint.close(), (<-q.reader).close())
	close(q.done)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// idle keeps all handles of a directory from indexing by themselves, until the function that it returns is called.
func idle(t *testing.T, q *Queue) (resume func()) {
	t.Helper()
	f, err := openLockFile(filepath.Join(q.dir, "queue.index"))
	if err == nil {
		err = lockFile(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func jobOf(id string, size int) queue.Job {
	return queue.Job{
		Provider: "stripe", EventID: id, DeliveryID: "d-" + id, Type: "invoice.paid", Resource: "in_1", Version: 3, Lane: "slow",
		Payload: bytes.Repeat([]byte(id), size/len(id)+1), ReceivedAt: time.Date(2026, 11, 30, 6, 0, 0, 1000, time.UTC),
	}
}

func store(t *testing.T, q *Queue, jobs ...queue.Job) {
	t.Helper()
	if err := q.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
}

func wantJobs(t *testing.T, q *Queue, want ...queue.Job) {
	t.Helper()
	for _, w := range want {
		e, err := q.Event(t.Context(), w.Provider, w.EventID)
		if err != nil {
			t.Errorf("event %s: %v", w.EventID, err)
			continue
		}
		if diff := cmp.Diff(w, e.Job, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("event %s (-want +got):\n%s", w.EventID, diff)
		}
	}
	d, err := q.Depth(t.Context())
	if err != nil || d.Waiting != int64(len(want)) {
		t.Errorf("depth %+v (%v), want %d waiting", d, err, len(want))
	}
}

// TestKilledBeforeIndexing: what was acknowledged and stands in the log alone is seen by everybody at once, and found by the next Open.
func TestKilledBeforeIndexing(t *testing.T) {
	dir := t.TempDir()
	watcher := openTest(t, dir)
	resume := idle(t, watcher)
	q := openTest(t, dir)
	jobs := []queue.Job{jobOf("a", 100), jobOf("b", 5000), jobOf("c", 300_000)}
	store(t, q, jobs[0])
	store(t, q, jobs[1], jobs[2])
	store(t, q, jobs[1]) // again
	dead := jobOf("d", 10)
	dead.DeadOnArrival = "malformed"
	store(t, q, dead)
	wantJobs(t, watcher, jobs...)
	if e, err := watcher.Event(t.Context(), "stripe", "d"); err != nil || e.State != queue.StateFailed || len(e.Attempts) != 1 {
		t.Errorf("the dead one: %+v, %v", e, err)
	}
	if d, err := watcher.Depth(t.Context()); err != nil || d.Dead != 1 || len(d.Lanes) != 1 || d.Lanes[0].Lane != "slow" {
		t.Errorf("depth %+v, %v, want 1 dead in one lane", d, err)
	}
	q.vanish(t)
	wantJobs(t, watcher, jobs...)

	next := openTest(t, dir)
	wantJobs(t, next, jobs...)
	if behind, err := next.indexer.behind(); err != nil || len(behind) > 0 {
		t.Errorf("after Open, %v is not indexed (%v)", behind, err)
	}
	if info, err := os.Stat(next.log.path(1)); err != nil || info.Size() != next.intakeEnd(t, 1) {
		t.Errorf("the segment of one that died was not cut: %v, %v", info, err)
	}
	resume()
}

func (q *Queue) intakeEnd(t *testing.T, number int64) int64 {
	t.Helper()
	ends, err := q.log.ends()
	if err != nil {
		t.Fatal(err)
	}
	return ends[number]
}

// TestDatabaseForgets: a loss of power may take the newest transactions of the database, since they are not synced. Nothing that was acknowledged is missed, and
// nothing comes twice that the database still knows.
func TestDatabaseForgets(t *testing.T) {
	dir := t.TempDir()
	q := openTest(t, dir)
	store(t, q, jobOf("early", 10))
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(q.path())
	if err != nil {
		t.Fatal(err)
	}
	q = openTest(t, dir)
	jobs := []queue.Job{jobOf("early", 10)}
	for i := range 50 {
		jobs = append(jobs, jobOf(fmt.Sprint("late", i), 1000*i))
	}
	store(t, q, jobs[1:]...)
	if err := q.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(q.path(), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(q.log.dir, "synced")); err != nil { // which is never synced
		t.Fatal(err)
	}
	wantJobs(t, openTest(t, dir), jobs...)
}

// TestAbandonedEnqueueIsNoSuccess: a call that is not written because its caller has left is answered with an error, whichever answer the caller takes.
func TestAbandonedEnqueueIsNoSuccess(t *testing.T) {
	q := openTest(t, t.TempDir())
	left, cancel := context.WithCancel(t.Context())
	cancel()
	one, two := jobOf("gone", 10), jobOf("here", 10)
	gone, here := q.intake.call(left, []queue.Job{one}), q.intake.call(t.Context(), []queue.Job{two})
	q.intake.calls <- gone
	q.intake.calls <- here
	if err := <-gone.result; !errors.Is(err, context.Canceled) {
		t.Errorf("the call of one who left: got error %v, want %v", err, context.Canceled)
	}
	if err := <-here.result; err != nil {
		t.Errorf("the other: %v", err)
	}
	wantJobs(t, q, two)
}

// TestOthersIndex: a handle that receives indexes what handles append that do not, and those do it themselves where none receives.
func TestOthersIndex(t *testing.T) {
	dir := t.TempDir()
	front, back := openTest(t, dir), openTest(t, dir)
	store(t, front, jobOf("a", 10))
	leases, err := back.Receive(t.Context(), "slow", 1)
	if err != nil || leases[0].EventID != "a" {
		t.Fatalf("received %+v, %v", leases, err)
	}
	if err := back.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	store(t, front, jobOf("b", 10))
	for known := false; !known; {
		err := front.read(t.Context(), func(c *conn) (err error) {
			known, err = c.exists(sqlKnown, "stripe", "b")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNextSegment: a full segment and one whose sync failed are left, wholly indexed, and cut.
func TestNextSegment(t *testing.T) {
	q := openTest(t, t.TempDir())
	jobs := []queue.Job{jobOf("a", 100), jobOf("b", 100), jobOf("c", 100)}
	store(t, q, jobs[0])
	q.intake.end = segmentLimit // nothing is under way
	q.intake.end, q.intake.spoilt = q.intakeEnd(t, 1), true
	store(t, q, jobs[1])
	q.intake.spoilt = true
	store(t, q, jobs[2])
	wantJobs(t, q, jobs...)
	numbers, err := q.log.numbers()
	if err != nil || len(numbers) != 3 {
		t.Fatalf("segments %v (%v), want three", numbers, err)
	}
	for _, n := range numbers[:2] {
		info, err := os.Stat(q.log.path(n))
		if err != nil || info.Size() != q.intakeEnd(t, n) || q.indexer.indexed(n) != closedSegment {
			t.Errorf("segment %d: size %d, indexed to %d, error %v; want it cut at %d and closed", n, info.Size(), q.indexer.indexed(n), err, q.intakeEnd(t, n))
		}
	}
}

// logOf writes records into a segment of a directory without a queue, and returns the places of the records.
func logOf(t *testing.T, dir string, enqueues ...[]queue.Job) (*segments, []place) {
	t.Helper()
	s, err := openSegments(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	var p packer
	var b []byte
	var places []place
	for _, jobs := range enqueues {
		for i := range jobs {
			places = append(places, place{1, int64(len(b))})
			b = p.append(b, &jobs[i], int64(len(places)), i < len(jobs)-1)
		}
	}
	if err := os.WriteFile(s.path(1), append(b, make([]byte, 1000)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.publish(1, int64(len(b))); err != nil {
		t.Fatal(err)
	}
	return s, places
}

// read returns the ids in a tail, with "!" for what is damaged.
func (t *tail) ids(about int) (ids []string, err error) {
	for {
		entries, err := t.next(about)
		if err != nil || len(entries) == 0 {
			return ids, err
		}
		for _, e := range entries {
			if e.job.Provider == "damaged" {
				e.job.EventID = "!"
			}
			ids = append(ids, e.job.EventID)
		}
	}
}

// TestTail breaks a log of two Enqueues in every way and reads it as of one who lives, which acknowledged all of it, and as of one who died while it wrote.
func TestTail(t *testing.T) {
	flip := func(n int) func([]byte, []place) []byte {
		return func(b []byte, at []place) []byte { b[at[n].offset+recordHeader+2] ^= 4; return b }
	}
	for name, tt := range map[string]struct {
		damage     func(b []byte, at []place) []byte
		live, torn []string
	}{
		"whole":             {func(b []byte, _ []place) []byte { return b }, []string{"a", "b", "c", "d"}, []string{"a", "b", "c", "d"}},
		"first":             {flip(0), []string{"!", "b", "c", "d"}, nil},
		"inside a group":    {flip(2), []string{"a", "b", "!", "d"}, []string{"a"}},
		"last":              {flip(3), []string{"a", "b", "c", "!"}, []string{"a"}},
		"cut between":       {func(b []byte, at []place) []byte { return b[:at[3].offset] }, []string{"a", "b", "c", "!"}, []string{"a"}},
		"cut within":        {func(b []byte, at []place) []byte { return b[:at[3].offset+12] }, []string{"a", "b", "c", "!"}, []string{"a"}},
		"empty":             {func([]byte, []place) []byte { return nil }, []string{"!"}, nil},
		"zeros from second": {func(b []byte, at []place) []byte { clear(b[at[1].offset:]); return b }, []string{"a", "!"}, []string{"a"}},
		"a length from nowhere": {func(b []byte, at []place) []byte { copy(b[at[1].offset:], "\xff\xff\xff\x0f"); return b },
			[]string{"a", "!", "c", "d"}, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, places := logOf(t, t.TempDir(), []queue.Job{jobOf("a", 3000)}, []queue.Job{jobOf("b", 10), jobOf("c", 70_000), jobOf("d", 10)})
			b, err := os.ReadFile(s.path(1))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.path(1), tt.damage(b, places), 0o600); err != nil {
				t.Fatal(err)
			}
			ends, err := s.ends()
			if err != nil {
				t.Fatal(err)
			}
			for _, about := range []int{20, 4000, maxBatchBytes} {
				live := &tail{log: s, number: 1, end: ends[1]}
				got, err := live.ids(about)
				if diff := cmp.Diff(tt.live, got); diff != "" || err != nil || live.offset != ends[1] {
					t.Errorf("acknowledged, %d at a time: ended at %d of %d, error %v, (-want +got):\n%s", about, live.offset, ends[1], err, diff)
				}
				got, err = (&tail{log: s, number: 1, torn: true}).ids(about)
				if diff := cmp.Diff(tt.torn, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
					t.Errorf("torn, %d at a time: error %v, (-want +got):\n%s", about, err, diff)
				}
			}
		})
	}
}

// TestDamagedLogIsToldOf: what was acknowledged and is damaged before it was indexed is a dead letter, not silence.
func TestDamagedLogIsToldOf(t *testing.T) {
	dir := t.TempDir()
	q := openTest(t, dir)
	resume := idle(t, q)
	store(t, q, jobOf("a", 100))
	store(t, q, jobOf("b", 100))
	q.vanish(t)
	damage(t, q.log.path(1), minRecord)
	resume()
	begin := time.Now()
	next := openTest(t, dir)
	var told []queue.DeadLetter
	next.TellDead(func(d queue.DeadLetter) { told = append(told, d) })
	d, err := next.Depth(t.Context())
	if err != nil || d.Waiting != 1 || d.Dead != 1 {
		t.Errorf("depth %+v (%v), want one waiting and one dead", d, err)
	}
	var listed []queue.DeadLetter
	err = next.DeadLetters(t.Context(), func(d queue.DeadLetter) error { listed = append(listed, d); return nil })
	if err != nil {
		t.Error(err)
	}
	for name, letters := range map[string][]queue.DeadLetter{"listed": listed, "told": told} {
		if len(letters) != 1 || letters[0].Provider != damagedProvider || letters[0].EventID != "segment 1, offset 0" || letters[0].Reason == "" ||
			letters[0].At.Before(begin.Truncate(time.Microsecond)) {
			t.Errorf("%s: dead letters %+v, want one of now", name, letters)
		}
	}
}

func damage(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ 1}, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedJobIsDead: a job whose record was damaged after it was indexed becomes a dead letter, and the jobs behind it are worked on.
func TestDamagedJobIsDead(t *testing.T) {
	q := openTest(t, t.TempDir())
	for i := range 3 {
		store(t, q, jobOf(fmt.Sprint("evt_", i), 100))
	}
	if err := q.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	damage(t, q.log.path(1), minRecord)
	told := make(chan queue.DeadLetter, 10)
	q.TellDead(func(d queue.DeadLetter) { told <- d })
	var got []string
	for len(got) < 2 {
		leases, err := q.Receive(t.Context(), "slow", 1)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, leases[0].EventID)
		if err := q.Settle(t.Context(), leases[0], queue.Done()); err != nil {
			t.Fatal(err)
		}
	}
	if fmt.Sprint(got) != "[evt_1 evt_2]" {
		t.Errorf("received %v, want those whose payloads are whole", got)
	}
	var dead []queue.DeadLetter
	err := q.DeadLetters(t.Context(), func(d queue.DeadLetter) error { dead = append(dead, d); return nil })
	if err != nil || len(dead) != 1 || dead[0].EventID != "evt_0" || dead[0].Payload != nil {
		t.Errorf("dead letters %+v (%v), want evt_0 without a payload", dead, err)
	}
	if len(told) != 1 {
		t.Fatalf("told of %d dead letters, want one", len(told))
	}
	if d := <-told; d.EventID != "evt_0" || d.Attempts != 1 || d.Reason != dead[0].Reason {
		t.Errorf("told of %+v, listed is %+v", d, dead[0])
	}
	if _, err := q.Event(t.Context(), "stripe", "evt_0"); !errors.Is(err, errDamaged) {
		t.Errorf("looking the event up: %v, want %v", err, errDamaged)
	}
}

// TestReaders reads more segments than descriptors are kept for, from many goroutines.
func TestReaders(t *testing.T) {
	s, _ := logOf(t, t.TempDir(), []queue.Job{jobOf("a", 100)})
	record, err := os.ReadFile(s.path(1))
	if err != nil {
		t.Fatal(err)
	}
	size := recordSize(record)
	for n := range int64(3 * maxOpenSegments) {
		if err := os.WriteFile(s.path(n+1), record, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for n := range int64(3 * maxOpenSegments) {
				if got, err := s.read(place{n + 1, 0}, size); err != nil || !bytes.Equal(got, record[:size]) {
					t.Errorf("segment %d: got %q (%v)", n+1, got, err)
				}
			}
		})
	}
	readers.Wait()
	if len(s.open) > maxOpenSegments {
		t.Errorf("%d descriptors are open, the bound is %d", len(s.open), maxOpenSegments)
	}
	for _, at := range []place{{99, 0}, {1, 1}, {1, int64(len(record))}} {
		if _, err := s.read(at, size); !errors.Is(err, errDamaged) {
			t.Errorf("at %v: error %v, want %v", at, err, errDamaged)
		}
	}
}

// FuzzTail reads any bytes as a log: all of it is accounted for, in order.
func FuzzTail(f *testing.F) {
	var p packer
	one, two := jobOf("a", 100), jobOf("b", 50)
	log := p.append(p.append(nil, &one, 1, true), &two, 2, false)
	f.Add(log, int64(len(log)))
	f.Add(log[3:], int64(20))
	f.Add(append(make([]byte, 30), log...), int64(500))
	s, err := openSegments(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = s.close() })
	f.Fuzz(func(t *testing.T, b []byte, end int64) {
		if end < 0 || end > 1<<20 {
			t.Skip()
		}
		if err := os.WriteFile(s.path(1), b, 0o600); err != nil {
			t.Fatal(err)
		}
		tl := &tail{log: s, number: 1, end: end}
		at := int64(0)
		for {
			entries, err := tl.next(64)
			if err != nil {
				return // of a newer version
			}
			if len(entries) == 0 {
				break
			}
			for _, e := range entries {
				if e.at.offset != at || e.size <= 0 {
					t.Fatalf("an entry of %d bytes at %d, want one at %d", e.size, e.at.offset, at)
				}
				at += int64(e.size)
			}
		}
		if at != end {
			t.Fatalf("ended at %d of %d", at, end)
		}
	})
}
