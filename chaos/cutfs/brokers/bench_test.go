//go:build linux

package brokers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"floodproof/chaos/cutfs"
	"floodproof/reference/queue/sqlite"
)

// BenchmarkSQLite compares 64 callers on an ordinary directory, on the mount with syncs that wait for the disk below as well, and on the mount alone.
func BenchmarkSQLite(b *testing.B) {
	b.Run("directory", func(b *testing.B) { benchmarkEnqueue(b, b.TempDir()) })
	b.Run("mount", func(b *testing.B) { benchmarkEnqueue(b, mount(b, cutfs.Config{RealSync: true}).Mountpoint) })
	b.Run("mount without real syncs", func(b *testing.B) { benchmarkEnqueue(b, mount(b, cutfs.Config{}).Mountpoint) })
}

func benchmarkEnqueue(b *testing.B, dir string) {
	q, err := sqlite.Open(b.Context(), dir, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := q.Close(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	var n atomic.Int64
	b.SetParallelism(callers / 2) // times GOMAXPROCS, which is two where this was measured
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := q.Enqueue(b.Context(), job(fmt.Sprint(n.Add(1)))); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "acks/s")
}
