package reference

import (
	"container/list"
	"errors"
	"net/netip"
	"sync"
	"time"

	"floodproof/reference/queue"
)

// DefaultMaxSenders is how many senders are told apart where a SenderLimit does not say.
const DefaultMaxSenders = 4096

// SenderLimit bounds how often one sender may come, whoever it is and whatever it sends, before anything of its request is read. The zero value is no limit.
//
// It is for endpoints that anybody can reach. A provider's own deliveries come in bursts and from a few addresses: a limit that is too low turns them away, and
// what a provider that never tries again was told to bring later is gone.
type SenderLimit struct {
	// Rate is requests a second, Burst how many may come at once; 0 is one second's worth, at least 1.
	Rate  float64
	Burst int
	// By says who is one sender.
	By SenderKey
	// MaxSenders is how many are remembered; who came least recently is forgotten first, and begins anew with a whole burst. 0: DefaultMaxSenders. So a flood from ever
	// new addresses is not limited, but neither does it take memory, or anything from those who are remembered.
	MaxSenders int
}

// SenderKey is what tells senders apart.
type SenderKey uint8

const (
	// ByAddress: the remote address, of IPv6 its /64, which is what one site has. Behind a proxy all requests are the proxy's, and ByProvider is what remains: a
	// header in which a proxy names the sender is not believed, because a sender can write it too.
	ByAddress SenderKey = iota
	// ByProvider: the provider's name in the path.
	ByProvider
)

func (l SenderLimit) check() error {
	switch {
	case l == SenderLimit{}:
		return nil
	case !(l.Rate > 0) || l.Burst < 0 || l.MaxSenders < 0 || l.By > ByProvider:
		return errors.New("limit of senders: set Rate to more than 0, By to ByAddress or ByProvider, and nothing below 0")
	}
	return l.limit().Check()
}

func (l SenderLimit) limit() queue.Limit {
	return queue.Limit{Name: "senders", Rate: l.Rate, Burst: max(1, orDefault(l.Burst, int(min(l.Rate, 1e6))))}
}

// senders remembers how often each of some senders came. It is safe for concurrent use. Nil admits everybody.
type senders struct {
	limit queue.Limit
	by    SenderKey
	most  int
	begun time.Time

	mu sync.Mutex
	// known are the entries of recent, which begins with who came last.
	known  map[string]*list.Element
	recent list.List
}

// sender is an entry of senders.
type sender struct {
	key  string
	left int64
}

func newSenders(l SenderLimit) *senders {
	if l == (SenderLimit{}) {
		return nil
	}
	return &senders{limit: l.limit(), by: l.By, most: orDefault(l.MaxSenders, DefaultMaxSenders), begun: time.Now(), known: map[string]*list.Element{}}
}

// admit reports whether the sender of a request may come now. Who may not is not counted: it may come again as soon as its rate allows, however often it tried meanwhile.
func (s *senders) admit(remote, provider string) bool {
	if s == nil {
		return true
	}
	key := provider
	if s.by == ByAddress {
		key = senderAddress(remote)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := s.entry(key)
	left, wait := s.limit.Reserve(entry.left, int64(time.Since(s.begun)), 1)
	if wait > 0 {
		return false
	}
	entry.left = left
	return true
}

// entry is a sender's, made anew if need be in the place of the one that came least recently; s.mu is held.
func (s *senders) entry(key string) *sender {
	if e, ok := s.known[key]; ok {
		s.recent.MoveToFront(e)
		return e.Value.(*sender)
	}
	if s.recent.Len() >= s.most {
		oldest := s.recent.Back()
		delete(s.known, s.recent.Remove(oldest).(*sender).key)
	}
	entry := &sender{key: key}
	s.known[key] = s.recent.PushFront(entry)
	return entry
}

// senderAddress is what of a remote address stands for one sender. What is no address, as in a server behind a Unix socket, is one sender.
func senderAddress(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	addr := at.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	site, err := addr.Prefix(64)
	if err != nil {
		return ""
	}
	return site.String()
}
