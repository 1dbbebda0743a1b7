package sink

// place names one effect: an event's step. Strange events, those that the run never introduced, have numbers of their own.
type place struct {
	number  uint32
	step    uint8
	strange bool
}

// pageEvents is how many events one page of effects covers.
const pageEvents = 4096

const (
	taken     = 1 << iota // the effect was taken at least once
	versioned             // and its page's versions hold the version of an upsert
)

// effects remembers what was taken, by event number and step. Numbers are dense, so that pages cost one byte a cell.
type effects struct {
	steps int
	pages []*page
}

type page struct {
	flags []uint8
	// versions is nil until the first upsert with a version.
	versions []int64
}

func (e *effects) cell(p place) (*page, int) {
	i := int(p.number / pageEvents)
	if i >= len(e.pages) || e.pages[i] == nil {
		return nil, 0
	}
	return e.pages[i], int(p.number%pageEvents)*e.steps + int(p.step)
}

// isTaken reports whether the effect was taken.
func (e *effects) isTaken(p place) bool {
	pg, i := e.cell(p)
	return pg != nil && pg.flags[i]&taken != 0
}

// version returns the highest version of an upsert, if one had a version.
func (e *effects) version(p place) (int64, bool) {
	pg, i := e.cell(p)
	if pg == nil || pg.flags[i]&versioned == 0 {
		return 0, false
	}
	return pg.versions[i], true
}

// take remembers that the effect was taken.
func (e *effects) take(p place) {
	i := int(p.number / pageEvents)
	for i >= len(e.pages) {
		e.pages = append(e.pages, nil)
	}
	if e.pages[i] == nil {
		e.pages[i] = &page{flags: make([]uint8, pageEvents*e.steps)}
	}
	pg, cell := e.cell(p)
	pg.flags[cell] |= taken
}

// raise remembers an upsert's version if it is the highest; the effect was taken before.
func (e *effects) raise(p place, v int64) {
	pg, i := e.cell(p)
	if pg.versions == nil {
		pg.versions = make([]int64, pageEvents*e.steps)
	}
	if pg.flags[i]&versioned == 0 || v > pg.versions[i] {
		pg.versions[i] = v
		pg.flags[i] |= versioned
	}
}
