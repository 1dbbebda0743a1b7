package disk

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// pageSize is the unit in which old content is put aside, and that of the kernel's write-back.
	pageSize = 4096
	// sectorSize is what a disk writes whole or not at all.
	sectorSize = 512
)

// zeroSlot stands for a page of zeros, which takes no room.
const zeroSlot = -1

// pageStore keeps pages that were put aside, in the slots of one file that is used again and never shrinks. It is guarded by the disk's lock.
type pageStore struct {
	file *os.File
	free []int32
	next int32
	// base holds the slots below first, which are read only: those of a disk that an image was made from.
	base  *pageStore
	first int32
}

func openPageStore(dir string) (*pageStore, error) {
	f, err := os.OpenFile(filepath.Join(dir, "pages"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	return &pageStore{file: f}, nil
}

// above is an empty store for what an image changes, on top of the pages of a disk that stands still. Its file has no name and is gone when it is closed.
func (s *pageStore) above(dir string) (*pageStore, error) {
	f, err := os.CreateTemp(dir, "image-pages-")
	if err != nil {
		return nil, err
	}
	// Where a file that is open cannot be removed, it stays until the disk's directory is.
	_ = os.Remove(f.Name())
	return &pageStore{file: f, next: s.next, base: s, first: s.next}, nil
}

// put keeps a page, or a zeroSlot if there is nothing in it.
func (s *pageStore) put(page []byte) (int32, error) {
	if isZero(page) {
		return zeroSlot, nil
	}
	slot := s.next
	if n := len(s.free); n > 0 {
		slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		s.next++
	}
	if _, err := s.file.WriteAt(page, int64(slot-s.first)*pageSize); err != nil {
		s.free = append(s.free, slot)
		return 0, fmt.Errorf("put a page aside: %w", err)
	}
	return slot, nil
}

// get reads a page into p, which is one page long.
func (s *pageStore) get(slot int32, p []byte) error {
	switch {
	case slot == zeroSlot:
		clear(p)
		return nil
	case slot < s.first:
		return s.base.get(slot, p)
	}
	if _, err := s.file.ReadAt(p, int64(slot-s.first)*pageSize); err != nil {
		return fmt.Errorf("read a page that was put aside: %w", err)
	}
	return nil
}

func (s *pageStore) drop(slot int32) {
	if slot >= s.first && slot != zeroSlot {
		s.free = append(s.free, slot)
	}
}

func (s *pageStore) inUse() int { return int(s.next) - len(s.free) }

func isZero(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}
