package loadgen

// allowance is what a provider sent of one of its customers lately.
type allowance struct {
	sent window
	// noticed is the begin of the stretch in which the last notice came, in seconds since 1970, 0 before the first.
	noticed int64
}

// limit applies the provider's quota to a slot that is due next, and reports whether that is beyond it. Then it is withheld, or a notice takes its place: a fact of
// its own, about no resource of the day. What was withheld does not count; whether more may be sent depends on what was.
func (s *stream) limit(cur *slot) (beyond bool) {
	q := cur.role.Provider.Quota
	if q.Events == 0 || len(cur.events) != 1 {
		return false
	}
	e := &cur.events[0]
	a := cur.role.allowance(q.Customer(*e))
	a.sent.add(q.Window, cur.due, sums{})
	if a.sent.total.events < q.Events {
		a.sent.add(q.Window, cur.due, sums{events: 1})
		return false
	}
	stretch := e.At.Truncate(q.Notice).Unix()
	if cur.withheld = stretch <= a.noticed; cur.withheld {
		return true
	}
	a.noticed = stretch
	e.Notice, e.Resource, e.Version, cur.versions = true, s.allot(1), 1, 1
	return true
}

// allowance is a customer's.
func (r *role) allowance(customer uint64) *allowance {
	a := r.allowances[customer]
	if a == nil {
		if r.allowances == nil {
			r.allowances = make(map[uint64]*allowance)
		}
		a = new(allowance)
		r.allowances[customer] = a
	}
	return a
}
