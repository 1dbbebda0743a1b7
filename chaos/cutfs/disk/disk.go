package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// journalLimit is the number of changes at which the journal commits by itself, so that a program that never syncs does not fill the memory.
const journalLimit = 1 << 16

// ErrFrozen is what every operation gets once the power is off.
var ErrFrozen = errors.New("the power is off")

// Disk is a file system that can lose its power. All methods may be called concurrently.
type Disk struct {
	dir   string
	pages *pageStore

	mu     sync.Mutex
	inodes map[ID]*inode
	lastID ID
	model  Model
	frozen bool
	// seq numbers everything that happens. committed is the number up to which the journal is durable; changes after it are in journal.
	seq       uint64
	committed uint64
	journal   []record
	failSyncs int
	// room is what still fits, nil without a limit.
	room  *Room
	stats Stats
	// damage is why the books are wrong, if they are.
	damage error
}

// Stats is what happened so far.
type Stats struct {
	// Operations numbers everything that changed something, and every sync: it is the clock of the disk.
	Operations uint64 `json:"operations"`
	Writes     uint64 `json:"writes"`
	Written    int64  `json:"written_bytes"`
	// Syncs have ended well, and made something durable unless the disk lies; FailedSyncs did not, on purpose.
	Syncs       uint64 `json:"syncs"`
	FailedSyncs uint64 `json:"failed_syncs"`
	// Refused are writes and allocations for which there was not room enough, those that were written in part included.
	Refused uint64 `json:"refused"`
	// LastSync is the number of the operation at which the last of Syncs began: what came later need not be durable. LastSyncAt is when it ended, zero without one.
	LastSync   uint64    `json:"last_sync"`
	LastSyncAt time.Time `json:"last_sync_at"`
	// Unsynced is how much data is not durable, in bytes; pages that were overwritten count whole. UnsyncedFiles is in how many files.
	Unsynced      int64 `json:"unsynced_bytes"`
	UnsyncedFiles int   `json:"unsynced_files"`
	// UnsyncedChanges are changes of names, sizes and attributes that are not durable. A disk that lies does not count them.
	UnsyncedChanges int `json:"unsynced_changes"`
	// Kept is how many bytes of old pages stand aside.
	Kept  int64 `json:"kept_bytes"`
	Model Model `json:"model"`
	// FrozenAt is when the power went off, zero before.
	FrozenAt time.Time `json:"frozen_at"`
}

// New makes an empty disk that keeps what it needs in dir, which must be empty or missing, and is the caller's to remove. It crashes as Ext4Ordered until it is armed
// otherwise. Its root belongs to owner with mode 0755.
func New(dir string, owner Owner) (*Disk, error) {
	if err := os.MkdirAll(filepath.Join(dir, "files"), 0o700); err != nil {
		return nil, fmt.Errorf("create the disk: %w", err)
	}
	pages, err := openPageStore(dir)
	if err != nil {
		return nil, fmt.Errorf("create the disk: %w", err)
	}
	d := &Disk{dir: dir, pages: pages, model: Ext4Ordered, inodes: make(map[ID]*inode), lastID: Root}
	root := newInode(Root, Attr{Mode: ModeDir | 0o755, Owner: owner})
	root.links, root.durableLinks, root.parent = 1, 1, Root
	d.inodes[Root] = root
	return d, nil
}

// Close closes the files. The disk cannot be used any more, nor its images.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freeze()
	errs := []error{d.pages.file.Close()}
	for _, in := range d.inodes {
		if in.content != nil && in.content.file != nil {
			errs = append(errs, in.content.file.Close())
			in.content.file = nil
		}
	}
	return errors.Join(errs...)
}

// Arm makes everything durable that there is, and lets the disk crash as m from here on. Syncs that are under way end without effect of their own.
func (d *Disk) Arm(m Model) error {
	if _, err := ParseModel(string(m)); err != nil {
		return fmt.Errorf("arm the disk: %w", err)
	}
	return d.checkpoint(func() { d.model = m })
}

// Checkpoint makes everything durable that there is, whatever was synced: where a broker was set up and is warm, the test begins.
func (d *Disk) Checkpoint() error { return d.checkpoint(func() {}) }

func (d *Disk) checkpoint(then func()) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frozen {
		return fmt.Errorf("make everything durable: %w", ErrFrozen)
	}
	d.seq++
	for _, in := range d.inodes {
		in.durable, in.synced = in.attr, d.seq
		in.pending = nil
		in.held -= in.mentioned
		in.mentioned = 0
		if in.content != nil {
			in.content.sealed(d.seq)
		}
	}
	d.journal = nil
	for _, in := range d.inodes {
		d.sealNames(in)
	}
	for _, in := range d.inodes {
		d.collect(in)
	}
	d.committed = d.seq
	then()
	return nil
}

// FailSyncs lets the next n syncs of files fail with an input/output error. What was dirty then is lost for every later sync too, as under Linux.
func (d *Disk) FailSyncs(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSyncs = n
}

// Freeze switches the power off: nothing changes any more, no sync ends well. It may be called again.
func (d *Disk) Freeze() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.freeze()
}

func (d *Disk) freeze() {
	if !d.frozen {
		d.frozen = true
		d.stats.FrozenAt = time.Now()
	}
}

// Stats tells what happened. It looks at every file, so it is nothing for a loop.
func (d *Disk) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stats
	s.Operations, s.Model = d.seq, d.model
	s.Kept = int64(d.pages.inUse()) * pageSize
	s.UnsyncedChanges = len(d.journal)
	for _, in := range d.inodes {
		s.UnsyncedChanges += len(in.pending)
		if in.content == nil {
			continue
		}
		if n := in.content.unsynced(); n > 0 {
			s.Unsynced += n
			s.UnsyncedFiles++
		}
	}
	return s
}

// change begins an operation that changes something: it takes the lock, which the caller gives back with done, unless there is an error.
func (d *Disk) change() (done func(), err error) {
	d.mu.Lock()
	if d.frozen {
		d.mu.Unlock()
		return nil, ErrFrozen
	}
	d.seq++
	return d.mu.Unlock, nil
}
