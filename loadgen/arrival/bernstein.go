package arrival

// maxDegree bounds the degree of a polynomial piece; products beyond it are integrated numerically. Four ramps times four ramps fit in.
const maxDegree = 8

// bernstein is a polynomial over [0, 1] by its coefficients in the Bernstein basis: the first and last are the values at the ends, those between
// bend it. None is negative here, and then the polynomial is not negative either, nor are sums, products and parts of such polynomials.
//
// Note: powers of t would be shorter to write, but they cancel each other: a product of two ramps that meet at 0 could come out a little below.
type bernstein []float64

// blend is between a and b, and exactly a or b at the ends.
func blend(a, b, u float64) float64 { return a*(1-u) + b*u }

// at evaluates the polynomial by the algorithm of de Casteljau, which only ever blends.
func (p bernstein) at(u float64) float64 {
	switch len(p) {
	case 1:
		return p[0]
	case 2:
		return blend(p[0], p[1], u)
	}
	var row [maxDegree + 2]float64
	n := copy(row[:], p)
	for n--; n > 0; n-- {
		for i := range n {
			row[i] = blend(row[i], row[i+1], u)
		}
	}
	return row[0]
}

// mean is the integral over [0, 1].
func (p bernstein) mean() float64 {
	sum := 0.0
	for _, c := range p {
		sum += c
	}
	return sum / float64(len(p))
}

// integral is the integral over [0, u].
func (p bernstein) integral(u float64) float64 {
	if len(p) == 1 {
		return p[0] * u
	}
	var sums [maxDegree + 2]float64
	for i, c := range p {
		sums[i+1] = sums[i] + c
	}
	return bernstein(sums[:len(p)+1]).at(u) / float64(len(p))
}

// part is the polynomial that runs through [from, until] of p while its own argument runs through [0, 1].
func (p bernstein) part(from, until float64) bernstein {
	if len(p) == 1 || from <= 0 && until >= 1 {
		return p
	}
	left, _ := p.split(until)
	if from <= 0 {
		return left
	}
	_, right := left.split(from / until)
	return right
}

// split cuts the polynomial at u.
func (p bernstein) split(u float64) (left, right bernstein) {
	n := len(p)
	left, right = make(bernstein, n), make(bernstein, n)
	row := append(bernstein(nil), p...)
	for i := range n {
		left[i], right[n-1-i] = row[0], row[n-1-i]
		for j := range n - 1 - i {
			row[j] = blend(row[j], row[j+1], u)
		}
	}
	return left, right
}

// raised is the same polynomial with at least n coefficients.
func (p bernstein) raised(n int) bernstein {
	for len(p) < n {
		d := float64(len(p))
		q := make(bernstein, len(p)+1)
		q[0], q[len(p)] = p[0], p[len(p)-1]
		for i := 1; i < len(p); i++ {
			q[i] = blend(p[i], p[i-1], float64(i)/d)
		}
		p = q
	}
	return p
}

// plus is the sum of two polynomials.
func (p bernstein) plus(q bernstein) bernstein {
	n := max(len(p), len(q))
	p, q = p.raised(n), q.raised(n)
	sum := make(bernstein, n)
	for i := range sum {
		sum[i] = p[i] + q[i]
	}
	return sum
}

// by is the product of two polynomials.
func (p bernstein) by(q bernstein) bernstein {
	m, n := len(p)-1, len(q)-1
	product := make(bernstein, m+n+1)
	for i, a := range p {
		for j, b := range q {
			product[i+j] += a * b * float64(choose(m, i)*choose(n, j)) / float64(choose(m+n, i+j))
		}
	}
	return product
}

// choose is the number of ways to choose k of n.
func choose(n, k int) int {
	c := 1
	for i := range k {
		c = c * (n - i) / (i + 1)
	}
	return c
}
