package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v4/disk"
	"github.com/shirou/gopsutil/v4/mem"

	"floodproof/bench/harness"
)

const (
	// roomNeeded is what the largest shipped day writes, with its reports: a million events take 2.8 GB.
	roomNeeded = 4 << 30
	// memoryNeeded is what a run takes: the runner 140 MB, four or more processes of the pipeline, a broker.
	memoryNeeded = 1 << 30
	// slowSync is where a sync alone uses up the 10 ms that 10k-day allows an answer, with what waits in line for it.
	slowSync = 5 * time.Millisecond
	// quickSync is what no disk does that has to keep its word when the power goes: a memory behind it answers.
	quickSync = 20 * time.Microsecond
	// slowClock is where reading the clock shows in what is measured.
	slowClock = time.Microsecond
)

// examineMachine says what the numbers of a run will be worth here.
func examineMachine(ctx context.Context, dir string) []diagnosis {
	list := []diagnosis{processors(), memory(ctx)}
	list = append(list, diskOf(ctx, dir)...)
	list = append(list, sharedPort(ctx))
	list = append(list, platformChecks()...)
	return append(list, clock())
}

func processors() diagnosis {
	all, usable := runtime.NumCPU(), runtime.GOMAXPROCS(0)
	d := diagnosis{Area: machineArea, Name: "processors", State: healthy, Found: fmt.Sprint(all)}
	if usable < all {
		d.State, d.Found, d.Means = limited, fmt.Sprintf("%d of %d may be used", usable, all), "a quota pauses everything at once, which shows as latency"
	}
	if usable < 2 {
		d.State, d.Means = limited, "generator and pipeline take turns; latency will be judged unknown"
	}
	return d
}

func memory(ctx context.Context) diagnosis {
	d := diagnosis{Area: machineArea, Name: "memory", State: healthy}
	m, err := mem.VirtualMemoryWithContext(ctx)
	if err != nil {
		d.State, d.Found = limited, "not known: "+err.Error()
		return d
	}
	d.Found = fmt.Sprintf("%s of %s available", gigabytes(m.Available), gigabytes(m.Total))
	if m.Available < memoryNeeded {
		d.State, d.Means = limited, "less than the "+gigabytes(memoryNeeded)+" of a run with a broker"
	}
	return d
}

func gigabytes(n uint64) string { return fmt.Sprintf("%.1f GB", float64(n)/(1<<30)) }

// diskOf is room, file system and speed of the disk under a directory.
func diskOf(ctx context.Context, dir string) []diagnosis {
	room := diagnosis{Area: machineArea, Name: "disk space", State: healthy}
	if u, err := disk.UsageWithContext(ctx, dir); err != nil {
		room.State, room.Found = limited, "not known: "+err.Error()
	} else {
		room.Found = gigabytes(u.Free) + " free under " + dir
		if u.Free < roomNeeded {
			room.State, room.Means = limited, "1m-day writes about 3 GB; 10k-day fits"
		}
	}
	m := harness.Examine(dir)
	return []diagnosis{room, fileSystem(m), syncTime(m)}
}

func fileSystem(m harness.Machine) diagnosis {
	d := diagnosis{Area: machineArea, Name: "file system", State: healthy, Found: m.FS}
	switch m.FS {
	case "":
		d.Found = "the platform does not say"
	case "tmpfs":
		d.State, d.Means, d.Fix = limited, "it is memory, so no durability is claimed", "floodproof run --out DIR"
	case "nfs", "fuse":
		d.State, d.Means = limited, "whether a sync is one is up to what is behind it"
	}
	return d
}

func syncTime(m harness.Machine) diagnosis {
	d := diagnosis{Area: machineArea, Name: "fsync", State: healthy}
	if m.FsyncUs == nil {
		d.State, d.Found, d.Means = missing, "cannot be measured", "the directory takes no synced writes"
		return d
	}
	took := time.Duration(*m.FsyncUs * float64(time.Microsecond))
	d.Found = fmt.Sprintf("p50 %v", took.Round(time.Microsecond))
	switch {
	case took > slowSync:
		d.State, d.Means = limited, "with that the latency limits of the shipped days cannot be held"
	case took < quickSync && m.FS != "tmpfs":
		d.State, d.Means = limited, "quicker than a disk; what is synced is perhaps only in a memory"
	}
	return d
}

func sharedPort(ctx context.Context) diagnosis {
	d := diagnosis{Area: machineArea, Name: "shared port", State: healthy, Found: "several receivers can listen on one (SO_REUSEPORT)"}
	if runtime.GOOS != "linux" {
		d.Found = "receivers inherit one listening descriptor; while all are dead, connections wait instead of being refused"
	}
	if err := harness.CheckSharedPort(ctx); err != nil {
		d.State, d.Found, d.Means = missing, err.Error(), "no scenario can be run here"
	}
	return d
}

// clock measures what reading it costs, and asks the platform what it is.
func clock() diagnosis {
	const readings = 10_000
	begin := time.Now()
	for range readings {
		_ = time.Now()
	}
	each := time.Since(begin) / readings
	d := diagnosis{Area: machineArea, Name: "clock", State: healthy, Found: fmt.Sprintf("%s, %v a reading", clockSource(), each)}
	if each > slowClock {
		d.State, d.Means = limited, "a clock without the kernel's short cut slows everything that is measured"
	}
	return d
}
