package state

// line is a heap of jobs, the earliest first.
type line []*entry

func (e *entry) before(other *entry) bool {
	return e.at < other.at || e.at == other.at && e.rank < other.rank
}

// Len implements heap.Interface.
func (l line) Len() int { return len(l) }

// Less implements heap.Interface.
func (l line) Less(i, j int) bool { return l[i].before(l[j]) }

// Swap implements heap.Interface.
func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].place, l[j].place = i, j
}

// Push implements heap.Interface.
func (l *line) Push(x any) {
	e := x.(*entry)
	e.place = len(*l)
	*l = append(*l, e)
}

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := len(*l) - 1
	e := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return e
}

// until counts what is not after an instant, from the place i of the heap downwards.
func (l line) until(at int64, i int) int64 {
	if i >= len(l) || l[i].at > at {
		return 0
	}
	return 1 + l.until(at, 2*i+1) + l.until(at, 2*i+2)
}
