package disk

import (
	"fmt"
	"strings"
)

// Model says what a loss of power does to what was not synced. Its value is the name that scenarios and reports use.
type Model string

const (
	// Ext4Ordered is ext4 as distributions mount it (data=ordered): unsynced data is lost, names and sizes go through one journal in order, and a sync of any changed file or
	// of any directory commits all of it. A rename over a file leaves the old or the new one, whole.
	Ext4Ordered Model = "ext4-ordered"
	// POSIXStrict gives nothing that POSIX does not promise: a file's data and attributes are durable after a sync of that file, a name after a sync of its
	// directory. Expect alarms that no common file system would justify: a new file needs a sync of its directory.
	POSIXStrict Model = "posix-strict"
	// RandomSubset is Ext4Ordered on a machine that was writing back in the background: each unsynced page of 4 KiB is old or new, and the journal was committed at a
	// random moment since its last commit.
	RandomSubset Model = "random-subset"
	// RandomSectors is RandomSubset in sectors of 512 bytes: pages are torn.
	RandomSectors Model = "random-sectors"
	// TornLastWrite is Ext4Ordered, but the file that was written last has everything up to its last write, and of that the first sectors only.
	TornLastWrite Model = "torn-last-write"
	// FsyncLies is a disk that acknowledges syncs and keeps nothing of them: everything since it was armed is lost. It must be armed before what it is to lose.
	FsyncLies Model = "fsync-lies"
)

// Models lists all models, the default first. The slice is the caller's.
func Models() []Model {
	return []Model{Ext4Ordered, POSIXStrict, RandomSubset, RandomSectors, TornLastWrite, FsyncLies}
}

// ParseModel finds a model by its name; empty is Ext4Ordered.
func ParseModel(name string) (Model, error) {
	if name == "" {
		return Ext4Ordered, nil
	}
	var known []string
	for _, m := range Models() {
		if string(m) == name {
			return m, nil
		}
		known = append(known, string(m))
	}
	return "", fmt.Errorf("unknown crash model %q (known: %s)", name, strings.Join(known, ", "))
}

// Doc is one sentence for lists and reports.
func (m Model) Doc() string {
	switch m {
	case Ext4Ordered:
		return "Keeps what ext4 (data=ordered) promises: a sync keeps its file and all earlier changes of names; unsynced data is lost."
	case POSIXStrict:
		return "Keeps what POSIX promises and no more: a new or renamed file needs a sync of its directory."
	case RandomSubset:
		return "As ext4-ordered, and each unsynced 4 KiB page may have been written back or not, as the seed says."
	case RandomSectors:
		return "As ext4-ordered, and each unsynced 512-byte sector may have been written back or not, as the seed says."
	case TornLastWrite:
		return "As ext4-ordered, and the last write reached the disk in part."
	case FsyncLies:
		return "Acknowledges every sync and keeps none: everything since the model was armed is lost."
	default:
		return "Unknown."
	}
}

// Random reports whether the seed matters.
func (m Model) Random() bool { return m == RandomSubset || m == RandomSectors || m == TornLastWrite }

// records is what has to be recorded while the disk runs. Models that need the same may be exchanged at the crash.
type records uint8

const (
	recordJournal records = iota
	recordEntries
	recordNothing
)

func (m Model) records() records {
	switch m {
	case POSIXStrict:
		return recordEntries
	case FsyncLies:
		return recordNothing
	default:
		return recordJournal
	}
}

// serves reports whether a disk armed with m knows enough to crash as other.
func (m Model) serves(other Model) bool { return m.records() == other.records() }
