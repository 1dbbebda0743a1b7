package verdict

import "iter"

const (
	pageBits = 12
	pageSize = 1 << pageBits
	// sparseSlots and sparseFactor bound what a file may make the judge allocate: as many slots as sparseSlots and sparseFactor times the records
	// that were introduced. Numbers are dense in every ledger that this program wrote, but a ledger may come from anywhere.
	sparseSlots  = 1 << 20
	sparseFactor = 16
)

// paged is an array indexed by record number that grows page by page, without ever copying what it holds. Its zero value is empty.
//
// Note: a slice that grows by append holds 2.25 times its content while it is copied, and a map 3 times; the pages keep a million events at
// their own size.
type paged[T any] struct {
	pages     []*[pageSize]T
	allocated int
}

// get returns the slot of number i, or nil if its page was never written.
func (p *paged[T]) get(i uint32) *T {
	if page := int(i >> pageBits); page < len(p.pages) && p.pages[page] != nil {
		return &p.pages[page][i%pageSize]
	}
	return nil
}

// at returns the slot of number i and makes room for it.
func (p *paged[T]) at(i uint32) *T {
	page := int(i >> pageBits)
	for page >= len(p.pages) {
		p.pages = append(p.pages, nil)
	}
	if p.pages[page] == nil {
		p.pages[page] = new([pageSize]T)
		p.allocated++
	}
	return &p.pages[page][i%pageSize]
}

// fits reports whether number i may be given room when n records were introduced so far.
func (p *paged[T]) fits(i uint32, n int64) bool {
	return p.get(i) != nil || int64(p.allocated)*pageSize <= sparseSlots+sparseFactor*n
}

// all yields every slot of every page that was written, by number.
func (p *paged[T]) all() iter.Seq2[uint32, *T] {
	return func(yield func(uint32, *T) bool) {
		for i, page := range p.pages {
			if page == nil {
				continue
			}
			for j := range page {
				if !yield(uint32(i)<<pageBits|uint32(j), &page[j]) {
					return
				}
			}
		}
	}
}
