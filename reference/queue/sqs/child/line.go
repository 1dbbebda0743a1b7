package child

import "container/heap"

// item is a stored message as the queue knows it. What it says stands in the log, at its place.
type item struct {
	number uint64
	place  place
	group  *group // of a FIFO queue
	sent   int64

	// due is when it can be received again, if it is hidden: delayed, or received. index is its place in the heap then, and -1 otherwise.
	due   int64
	index int
	// token proves the last receiving, 0 before the first; received counts them, first is when that was. All three begin anew with the server.
	token    uint64
	received int
	first    int64
	gone     bool
}

// group is a message group of a FIFO queue: its messages come in order, and none while one of them is hidden.
type group struct {
	name   string
	items  []*item
	hidden int
	listed bool // in the line of groups
}

// line is the messages of one queue, in the order in which they may be received. The zero value is an empty one of a standard queue.
type line struct {
	fifo   bool
	ready  []*item  // of a standard queue: visible, with some that are gone
	groups []*group // of a FIFO queue: those from which something may be received, with some that are empty
	byName map[string]*group
	hidden hiddenItems
	count  int
}

// add puts a message behind all others, hidden until due, if that is not 0.
func (l *line) add(m *item, groupName string, due int64) {
	l.count++
	m.index = -1
	if l.fifo {
		g := l.byName[groupName]
		if g == nil {
			if l.byName == nil {
				l.byName = make(map[string]*group)
			}
			g = &group{name: groupName}
			l.byName[groupName] = g
		}
		m.group = g
		g.items = append(g.items, m)
	}
	if due > 0 {
		l.hide(m, due)
		return
	}
	l.show(m)
}

// hide makes a message invisible until due.
func (l *line) hide(m *item, due int64) {
	m.due = due
	if m.index >= 0 {
		heap.Fix(&l.hidden, m.index)
		return
	}
	heap.Push(&l.hidden, m)
	if m.group != nil {
		m.group.hidden++
	}
}

// show makes a message visible, or what it held up in its group.
func (l *line) show(m *item) {
	if m.index >= 0 {
		heap.Remove(&l.hidden, m.index)
		if m.group != nil {
			m.group.hidden--
		}
	}
	if m.group != nil {
		l.list(m.group)
		return
	}
	if !m.gone {
		l.ready = append(l.ready, m)
	}
}

// list puts a group into the line if something of it may be received.
func (l *line) list(g *group) {
	if !g.listed && g.hidden == 0 && len(g.items) > 0 {
		g.listed = true
		l.groups = append(l.groups, g)
	}
}

// remove takes a message out for good. A second time changes nothing.
func (l *line) remove(m *item) {
	if m.gone {
		return
	}
	m.gone = true
	l.count--
	if g := m.group; g != nil {
		for i, other := range g.items { // it is one of the first
			if other == m {
				g.items = append(g.items[:i:i], g.items[i+1:]...)
				break
			}
		}
		if m.index >= 0 {
			l.show(m)
		}
		if len(g.items) == 0 && !g.listed {
			delete(l.byName, g.name)
		}
		return
	}
	if m.index >= 0 {
		heap.Remove(&l.hidden, m.index)
	}
}

// expire makes visible what is due.
func (l *line) expire(now int64) {
	for len(l.hidden) > 0 && l.hidden[0].due <= now {
		l.show(l.hidden[0])
	}
}

// next is when the next hidden message becomes visible; false if there is none.
func (l *line) next() (int64, bool) {
	if len(l.hidden) == 0 {
		return 0, false
	}
	return l.hidden[0].due, true
}

// take receives up to limit messages, which are hidden until due afterwards.
func (l *line) take(limit int, due int64) []*item {
	var taken []*item
	if !l.fifo {
		n := 0
		for _, m := range l.ready {
			if len(taken) == limit {
				break
			}
			n++
			if !m.gone && m.index < 0 {
				taken = append(taken, m)
			}
		}
		l.ready = l.ready[n:]
		for _, m := range taken {
			l.hide(m, due)
		}
		return taken
	}
	for len(l.groups) > 0 && len(taken) < limit {
		g := l.groups[0]
		l.groups = l.groups[1:]
		g.listed = false
		if g.hidden > 0 {
			continue
		}
		some := g.items[:min(len(g.items), limit-len(taken))]
		for _, m := range some {
			l.hide(m, due)
		}
		taken = append(taken, some...)
		if len(g.items) == 0 {
			delete(l.byName, g.name)
		}
	}
	return taken
}

// visible is how many messages are not hidden.
func (l *line) visible() int { return l.count - len(l.hidden) }

// hiddenItems is a heap by the instant at which they become visible, and by age.
type hiddenItems []*item

func (h hiddenItems) Len() int { return len(h) }
func (h hiddenItems) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].number < h[j].number
}

func (h hiddenItems) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *hiddenItems) Push(x any) {
	m := x.(*item)
	m.index = len(*h)
	*h = append(*h, m)
}

// Pop implements heap.Interface.
func (h *hiddenItems) Pop() any {
	old := *h
	m := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	m.index = -1
	return m
}
