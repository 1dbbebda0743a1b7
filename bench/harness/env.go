package harness

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"floodproof/reports/ledger"
)

// fsyncProbes is how many small synced writes tell how fast the disk is.
const fsyncProbes = 41

// environment reads what the verdict says of the machine.
func environment(dir, commit string) ledger.Env {
	return ledger.Env{
		CPUs:       runtime.NumCPU(),
		Go:         runtime.Version(),
		OS:         runtime.GOOS + "/" + runtime.GOARCH,
		FS:         fileSystem(dir),
		FsyncUsP50: fsyncMedian(dir),
		Commit:     commit,
	}
}

// fsyncMedian is the median of a 4 KiB append and its fsync in dir, in microseconds, nil if it cannot be measured.
func fsyncMedian(dir string) *float64 {
	path := filepath.Join(dir, "fsync-probe")
	f, err := os.Create(path)
	if err != nil {
		return nil
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(path)
	}()
	page, took := make([]byte, 4096), make([]time.Duration, 0, fsyncProbes)
	for range fsyncProbes {
		begin := time.Now()
		if _, err := f.Write(page); err != nil {
			return nil
		}
		if err := f.Sync(); err != nil {
			return nil
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	us := float64(took[len(took)/2]) / float64(time.Microsecond)
	return &us
}
