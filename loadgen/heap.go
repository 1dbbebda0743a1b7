package loadgen

// heap is a binary min-heap. The zero value with a before is empty and ready.
//
// Note: container/heap would put an interface call and an allocation into a path that runs twice for every request.
type heap[T any] struct {
	before func(a, b T) bool
	items  []T
}

func (h *heap[T]) len() int { return len(h.items) }

// top returns the least item. The heap must not be empty.
func (h *heap[T]) top() T { return h.items[0] }

func (h *heap[T]) push(item T) {
	h.items = append(h.items, item)
	i := len(h.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h.before(h.items[i], h.items[parent]) {
			return
		}
		h.items[i], h.items[parent] = h.items[parent], h.items[i]
		i = parent
	}
}

// pop removes and returns the least item. The heap must not be empty.
func (h *heap[T]) pop() T {
	var zero T
	least, last := h.items[0], len(h.items)-1
	h.items[0], h.items[last] = h.items[last], zero
	h.items = h.items[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return least
		}
		if right := child + 1; right < last && h.before(h.items[right], h.items[child]) {
			child = right
		}
		if !h.before(h.items[child], h.items[i]) {
			return least
		}
		h.items[i], h.items[child] = h.items[child], h.items[i]
		i = child
	}
}

// fifo is a queue in order of arrival. The zero value is empty and ready.
type fifo[T any] struct {
	items []T
	first int
}

func (q *fifo[T]) len() int { return len(q.items) - q.first }

func (q *fifo[T]) push(item T) { q.items = append(q.items, item) }

// front returns the oldest item. The queue must not be empty.
func (q *fifo[T]) front() T { return q.items[q.first] }

// pop removes and returns the oldest item. The queue must not be empty. Its memory is taken back when half of it is used up, so that a queue that
// never gets quite empty does not grow for ever.
func (q *fifo[T]) pop() T {
	var zero T
	item := q.items[q.first]
	q.items[q.first] = zero
	q.first++
	if 2*q.first >= len(q.items) {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	return item
}
