package provider

import "sync"

// maxParsed is how many secrets a provider remembers. A run has a handful: those that are active, and one that signs forgeries.
const maxParsed = 64

// parsed remembers what was made of each secret, because parsing a private key costs as much as signing with it. Its zero value is ready; it is safe for
// concurrent use, and bounded: when it is full it starts anew.
type parsed[T any] struct {
	mu    sync.RWMutex
	known map[string]T
}

// of returns what parse makes of the secret. Two calls that meet may both parse, and must get the same.
func (p *parsed[T]) of(secret string, parse func(secret string) T) T {
	p.mu.RLock()
	v, ok := p.known[secret]
	p.mu.RUnlock()
	if ok {
		return v
	}
	v = parse(secret)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxParsed {
		p.known = make(map[string]T, 4)
	}
	p.known[secret] = v
	return v
}
