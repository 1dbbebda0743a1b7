package disk

// record is one change that is not durable yet. Exactly one of its parts is used, but for a rename, which may have a pin beside the changes.
type record struct {
	seq     uint64
	changes []change
	// about is the file or directory that the rest is about, 0 without.
	about ID
	kind  recordKind
	// size is the new one, and from the old; a hole is from and to.
	size, from, to int64
	attr           Attr
	// pin is a snapshot of about that becomes durable with the record: the data of a file that was renamed over another.
	pin uint64
}

// change is one directory entry; to is 0 where it was removed.
type change struct {
	dir  ID
	name string
	to   ID
}

type recordKind uint8

const (
	recordNames recordKind = iota
	recordSize
	recordHole
	recordAttr
)

// record writes down a change that was just made. In the model without a journal only names are written down, each at its directory.
func (d *Disk) record(r record) {
	r.seq = d.seq
	switch d.model.records() {
	case recordNothing:
	case recordJournal:
		d.mention(r)
		d.journal = append(d.journal, r)
		if len(d.journal) > journalLimit {
			d.commit(r.seq)
		}
	case recordEntries:
		for _, c := range r.changes {
			one := record{seq: r.seq, changes: []change{c}}
			dir := d.inodes[c.dir]
			d.mention(one)
			dir.pending = append(dir.pending, one)
			if len(dir.pending) > 1024 && len(dir.pending) > 4*len(dir.entries) {
				d.compact(dir)
			}
		}
	}
}

// compact leaves the last change of each name of a directory that nobody syncs. A sync that is under way may find less than it could.
func (d *Disk) compact(dir *inode) {
	last := make(map[string]int, len(dir.pending))
	for i, r := range dir.pending {
		last[r.changes[0].name] = i
	}
	var rest, gone []record
	for i, r := range dir.pending {
		c := r.changes[0]
		if last[c.name] == i && dir.durableEntries[c.name] != c.to {
			rest = append(rest, r)
		} else {
			gone = append(gone, r)
		}
	}
	dir.pending = rest
	for _, r := range gone {
		d.forget(r)
	}
}

// mention keeps alive what a record names, until forget.
func (d *Disk) mention(r record) { d.eachMentioned(r, 1) }

func (d *Disk) forget(r record) { d.eachMentioned(r, -1) }

func (d *Disk) eachMentioned(r record, by int) {
	count := func(id ID) {
		in, ok := d.inodes[id]
		if !ok {
			return
		}
		in.held += by
		in.mentioned += by
		if by < 0 {
			d.collect(in)
		}
	}
	for _, c := range r.changes {
		count(c.dir)
		count(c.to)
	}
	count(r.about)
}

// commit makes the journal durable up to and including an operation.
func (d *Disk) commit(upTo uint64) {
	n := 0
	for n < len(d.journal) && d.journal[n].seq <= upTo {
		n++
	}
	done := d.journal[:n:n]
	d.journal = append([]record(nil), d.journal[n:]...)
	d.committed = max(d.committed, upTo)
	d.applyAll(done)
}

// commitNames makes the changes of one directory durable.
func (d *Disk) commitNames(dir *inode, upTo uint64) {
	n := 0
	for n < len(dir.pending) && dir.pending[n].seq <= upTo {
		n++
	}
	done := dir.pending[:n:n]
	dir.pending = append([]record(nil), dir.pending[n:]...)
	d.applyAll(done)
}

func (d *Disk) applyAll(done []record) {
	for _, r := range done {
		if err := d.apply(r); err != nil {
			d.broken(err)
		}
	}
	for _, r := range done {
		d.forget(r)
	}
}

// apply brings the durable state forward by one record.
func (d *Disk) apply(r record) error {
	for _, c := range r.changes {
		dir, ok := d.inodes[c.dir]
		if !ok {
			continue
		}
		old := dir.durableEntries[c.name]
		if c.to == 0 {
			delete(dir.durableEntries, c.name)
		} else {
			dir.durableEntries[c.name] = c.to
			d.inodes[c.to].durableLinks++
		}
		d.unlinkDurable(old)
	}
	in, ok := d.inodes[r.about]
	if !ok {
		return nil
	}
	switch r.kind {
	case recordSize:
		return in.content.resize(r.seq, r.size)
	case recordHole:
		return in.content.clearRange(r.seq, r.from, r.to)
	case recordAttr:
		in.durable = r.attr
	case recordNames:
		if r.pin != 0 {
			in.content.settle(r.pin)
		}
	}
	return nil
}

// broken freezes a disk that cannot keep its books any more: a wrong image would be worse than none.
func (d *Disk) broken(err error) {
	if d.damage == nil {
		d.damage = err
	}
	d.freeze()
}
