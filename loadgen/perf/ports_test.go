package perf

import (
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	"floodproof/loadgen"
	"floodproof/loadgen/wire"
)

// BenchmarkPorts sends 15,000 requests a second for ten seconds, twice, with connections that are kept alive and with a new one for each request. Senders run
// out of local ports that way (https://github.com/tsenart/vegeta/issues/583), above all in the second run, when those of the first are still in TIME_WAIT; the
// connections of the second kind come from many addresses of 127.0.0.0/8 therefore. No request may fail for lack of a port.
func BenchmarkPorts(b *testing.B) {
	if runtime.GOOS != "linux" {
		b.Skip("only Linux answers to all of 127.0.0.0/8")
	}
	const rate, count = 15_000, 150_000
	var sources []netip.Addr
	for last := byte(1); last <= 32; last++ {
		sources = append(sources, netip.AddrFrom4([4]byte{127, 0, 1, last}))
	}
	for _, with := range []struct {
		name    string
		options wire.Options
	}{
		{"keep-alive", wire.Options{}},
		{"new-each", wire.Options{MaxIdle: -1, Sources: sources}},
	} {
		b.Run(with.name, func(b *testing.B) {
			for range b.N {
				s := startServer(b, atOnce, 1)
				for run := 1; run <= 2; run++ {
					before := timeWait()
					f, err := ours(b.Context(), load{
						from: acme(), to: s.url, gap: time.Second / rate, count: count, inFlight: slots, transport: &loadgen.WireTransport{Options: with.options},
					})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(f.perSecond, fmt.Sprintf("run%d-req/s", run))
					b.ReportMetric(float64(f.failed), fmt.Sprintf("run%d-failed", run))
					b.ReportMetric(float64(f.local), fmt.Sprintf("run%d-no-port", run))
					b.ReportMetric(float64(timeWait()-before), fmt.Sprintf("run%d-time-wait", run))
				}
				b.ReportMetric(float64(s.stop(b).Connections), "connections")
			}
		})
	}
}

// timeWait is how many sockets of this machine are in TIME_WAIT.
func timeWait() int {
	text, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0
	}
	m := regexp.MustCompile(`(?m)^TCP:.* tw (\d+)`).FindSubmatch(text)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return 0
	}
	return n
}
