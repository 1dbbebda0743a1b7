package disk

import (
	"syscall"
	"time"
)

// Sync is a sync that is under way. It ends with Done, once.
type Sync struct {
	disk *Disk
	in   *inode
	// seq is the operation at which it began. taken is the snapshot of the file's data that will be durable.
	seq, taken uint64
	attr       Attr
	commits    bool
	failed     bool
	writes     bool
	model      Model
}

// BeginSync begins fsync, or fdatasync with dataOnly, of a file or directory: what there is now becomes durable when the sync is done, and what is
// written from here on does not. The inode is held until then.
func (d *Disk) BeginSync(id ID, dataOnly bool) (Sync, error) {
	done, err := d.change()
	if err != nil {
		return Sync{}, err
	}
	defer done()
	in, err := d.get(id)
	if err != nil {
		return Sync{}, err
	}
	s := Sync{disk: d, in: in, seq: d.seq, attr: in.attr, model: d.model}
	if in.content != nil && d.failSyncs > 0 {
		d.failSyncs--
		s.failed = true
		if err := in.content.lose(); err != nil {
			return Sync{}, err
		}
	}
	switch {
	case s.failed || d.model.records() == recordNothing:
	case in.content == nil:
		s.commits = true
	default:
		if s.taken, err = in.content.snapshot(d.seq); err != nil {
			return Sync{}, err
		}
		changed := in.touched
		if dataOnly {
			changed = in.sized
		}
		s.commits = changed > d.committed
		s.writes = s.commits || s.taken == d.seq || len(in.content.layers) > 1
	}
	in.held++
	return s, nil
}

// Writes reports whether there was data for the sync to write, or an earlier one is still at it. Without that a sync costs nothing: PostgreSQL syncs each of its thousand files
// when it recovers.
func (s Sync) Writes() bool { return s.writes }

// Done ends a sync: what it stands for is durable when Done returns nil. It fails if the sync was to fail, or the power went off in the meantime.
func (s Sync) Done() error {
	d := s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		s.in.held--
		d.collect(s.in)
	}()
	switch {
	case d.frozen:
		return ErrFrozen
	case s.failed:
		d.stats.FailedSyncs++
		return syscall.EIO
	case s.model == d.model:
		s.settle()
	}
	if d.damage != nil {
		return d.damage
	}
	d.stats.Syncs++
	if s.seq > d.stats.LastSync {
		d.stats.LastSync = s.seq
	}
	d.stats.LastSyncAt = time.Now()
	return nil
}

func (s Sync) settle() {
	d := s.disk
	switch d.model.records() {
	case recordNothing:
		return
	case recordJournal:
		if s.commits {
			d.commit(s.seq)
		}
	case recordEntries:
		if s.seq > s.in.synced {
			s.in.durable, s.in.synced = s.attr, s.seq
		}
		if s.in.entries != nil {
			d.commitNames(s.in, s.seq)
		}
	}
	if s.in.content != nil {
		s.in.content.settle(s.taken)
	}
}

// SyncLive waits until the live bytes of a file are on the disk of this machine, as a sync without the mount would. It makes nothing durable in the model.
func (d *Disk) SyncLive(id ID) error {
	d.mu.Lock()
	in, err := d.get(id)
	if err != nil || in.content == nil || in.content.file == nil {
		d.mu.Unlock()
		return err
	}
	f := in.content.file
	d.mu.Unlock() // whoever syncs has it open, so it stays
	return f.Sync()
}
