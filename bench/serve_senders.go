package bench

import (
	"cmp"
	"fmt"

	"floodproof/reference"
	"floodproof/reference/queue"
)

// serveSenders bounds how often one sender may come to the receiver. The zero value is no bound.
type serveSenders struct {
	rate  float64
	burst int
	// by is "address" or "provider", "" if it was not said.
	by string
}

// senderKeys are what one sender may be.
func senderKeys() map[string]reference.SenderKey {
	return map[string]reference.SenderKey{"address": reference.ByAddress, "provider": reference.ByProvider}
}

func (s *serveSenders) setBy(text string) error {
	if _, known := senderKeys()[text]; !known {
		return fmt.Errorf("%q: use address or provider", text)
	}
	s.by = text
	return nil
}

// limit is the bound as a receiver takes it.
func (s *serveSenders) limit() reference.SenderLimit {
	if s.rate == 0 {
		return reference.SenderLimit{}
	}
	return reference.SenderLimit{Rate: s.rate, Burst: s.burst, By: senderKeys()[s.by]}
}

// checkSenders finds a bound that cannot be meant.
func (c *serveConfig) checkSenders() []error {
	s := c.senders
	switch {
	case s.rate == 0 && (s.burst > 0 || s.by != ""):
		return []error{fmt.Errorf("%s: there is no sender-rate that it belongs to: set that too, or leave it out", c.from("sender-burst", "sender-by"))}
	case s.rate > 0 && s.by == "" && c.publicURL != "":
		return []error{fmt.Errorf("%s: public-url says that a proxy stands before the receiver, so that all requests come from one address: set sender-by to provider, or to address if there is none", c.from("sender-rate"))}
	}
	return nil
}

// describe says what it comes to, for people.
func (s *serveSenders) describe() string {
	if s.rate == 0 {
		return "come as often as they like"
	}
	by := s.by
	if by == "" {
		by = "address"
	}
	l := queue.Limit{Rate: s.rate, Burst: max(1, cmp.Or(s.burst, int(s.rate)))}
	return fmt.Sprintf("each %s at most %s", by, l)
}
