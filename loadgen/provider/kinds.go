package provider

// kind is a kind of resource: the template of its object and the types of its first and of its later events.
type kind struct {
	body, first, later string
	weight             uint64
}

func (k kind) eventType(e Event) string {
	if e.Version <= 1 {
		return k.first
	}
	return k.later
}

// weighted draws an index by weight.
func weighted(kinds []kind, r uint64) int {
	total := uint64(0)
	for _, k := range kinds {
		total += k.weight
	}
	r %= total
	for i, k := range kinds {
		if r < k.weight {
			return i
		}
		r -= k.weight
	}
	return 0
}
