package harness

import (
	"net/netip"
	"net/url"
	"runtime"

	"floodproof/loadgen"
	"floodproof/loadgen/wire"
)

// sourceAddresses is how many addresses of 127.0.0.0/8 senders without keep-alive come from. Each brings some 28,000 ports, which come back after a minute in
// TIME_WAIT: 250 carry more than 100,000 such connections a second, without end.
const sourceAddresses = 250

// transportTo is what the generator sends with. Where the whole target is on the loopback interface, senders that keep no connection alive (WooCommerce's
// HTTP/1.0) come from many addresses, so that the one that everybody has cannot run out of ports.
func transportTo(mix []loadgen.Share, maxInFlight int) *loadgen.WireTransport {
	t := &loadgen.WireTransport{Options: wire.Options{MaxIdle: maxInFlight}}
	for _, share := range mix {
		if !onLoopback(share.URL) {
			return t
		}
	}
	t.Sources = loopbackSources()
	return t
}

// onLoopback reports whether a URL leads to an address of 127.0.0.0/8. A name may lead anywhere, localhost to ::1, which is a single address.
func onLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Is4() && ip.IsLoopback()
}

// loopbackSources are the addresses, none where the system knows 127.0.0.1 only: Linux alone answers to the whole network without being told.
func loopbackSources() []netip.Addr {
	if runtime.GOOS != "linux" {
		return nil
	}
	sources := make([]netip.Addr, sourceAddresses)
	for i := range sources {
		sources[i] = netip.AddrFrom4([4]byte{127, 0, 1, byte(i + 1)})
	}
	return sources
}
