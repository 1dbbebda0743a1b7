package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/reference/queue"
	"floodproof/reference/queue/sqlite"
)

// delayedEntries is how many updates of resources wait in BenchmarkDelayedEntries for the end of their quiet window.
func delayedEntries() int64 {
	if testing.Short() {
		return 50_000
	}
	return 1_000_000
}

// BenchmarkDelayedEntries measures what a million debounced updates that are not due yet cost the one process that received them all, indexed them all and waits for them,
// as receiver and worker in one: B/entry is how much its resident memory has grown for each, SQLite's own memory and the page cache of its connections included, heap-B/entry what of that is
// Go's heap. Both are told after the last of them is in the database. With -short there are fewer.
func BenchmarkDelayedEntries(b *testing.B) {
	entries := delayedEntries()
	for range b.N {
		q := open(b, b.TempDir(), sqlite.Options{})
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := q.Receive(ctx, "", 1) // whoever receives is who indexes
			ended <- err
		}()
		resident, heap := memoryOf(b)
		payload := body(1500, rand.New(rand.NewPCG(5, 6)))
		for from := 0; from < int(entries); from += 500 {
			if err := q.Enqueue(b.Context(), delayed(from, 500, payload)...); err != nil {
				b.Fatal(err)
			}
		}
		for rest := int64(1); rest > 0; {
			d, err := q.Depth(b.Context())
			if err != nil || d.Waiting != entries {
				b.Fatalf("depth %+v (%v), want %d waiting", d, err, entries)
			}
			waiting, _, _, _, err := q.Recount()
			if err != nil {
				b.Fatal(err)
			}
			rest = entries - waiting
		}
		residentAfter, heapAfter := memoryOf(b)
		b.ReportMetric((residentAfter-resident)/float64(entries), "B/entry")
		b.ReportMetric((heapAfter-heap)/float64(entries), "heap-B/entry")
		b.ReportMetric(residentAfter/1e6, "MB")
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.Fatalf("a Receive while nothing is due: %v", err)
		}
	}
	b.ReportMetric(float64(int64(b.N)*entries)/b.Elapsed().Seconds(), "entries/s")
}

// delayed are updates of a resource each.
func delayed(from, count int, payload []byte) []queue.Job {
	jobs := make([]queue.Job, count)
	for i := range jobs {
		id := from + i
		jobs[i] = queue.Job{
			Provider: "hubspot", EventID: fmt.Sprintf("evt_%08d", id), Type: "contact.propertyChange", Resource: fmt.Sprintf("contact/%d", id), Version: int64(id), Payload: payload,
			ReceivedAt: time.Now(), Debounce: queue.Debounce{Quiet: 6 * time.Hour, MaxWait: 12 * time.Hour},
		}
	}
	return jobs
}

// memoryOf is the resident memory and the live heap of this process in bytes, after what is free was given back.
func memoryOf(b *testing.B) (resident, heap float64) {
	b.Helper()
	debug.FreeOSMemory()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		b.Fatal(err)
	}
	m, err := p.MemoryInfo()
	if err != nil {
		b.Fatal(err)
	}
	return float64(m.RSS), float64(stats.HeapAlloc)
}
