package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"floodproof/chaos"
	"floodproof/loadgen"
	"floodproof/loadgen/provider"
	"floodproof/loadgen/wire"
	"floodproof/reports/ledger"
)

const (
	// forgeriesASender is how many forgeries a second one sender of a flood is there for, maxForgers how many senders there are at most.
	forgeriesASender = 40
	maxForgers       = 512
	// floodLag is how far behind a flood may fall before it lets go what it missed: a receiver that stood still must not get everything at once.
	floodLag = 100 * time.Millisecond
	// forgerAddresses is how many addresses of its own a flood comes from, where the system lets it choose.
	forgerAddresses = 16
)

// flooder is a run as somebody who can send forgeries. It implements chaos.Flooder.
type flooder struct{ *run }

// Flood implements chaos.Flooder.
func (f flooder) Flood(ctx context.Context, c chaos.Flood) (func(context.Context) error, error) {
	i := slices.IndexFunc(f.gen.Traffic.Mix, func(s loadgen.Share) bool { return s.Provider.Name == c.Provider })
	if i < 0 {
		return nil, fmt.Errorf("%s sends nothing in this run: name one that is in the mix", c.Provider)
	}
	share := f.gen.Traffic.Mix[i]
	if own := f.cast.custom[c.Provider]; own != nil && own.Scheme == "none" {
		return nil, fmt.Errorf("%s does not sign: nothing of it can be forged", c.Provider)
	}
	if !onLoopback(share.URL) {
		return nil, fmt.Errorf("the receiver of %s is not on this machine: a flood goes nowhere else", c.Provider)
	}
	flood := &flood{
		run: f.run, share: share, index: uint8(i), rate: c.Rate, secret: randomSecret(share.Provider),
		client: wire.New(wire.Options{MaxIdle: maxForgers, Sources: forgerSources()}),
	}
	return flood.begin(ctx), nil
}

// forgerSources are addresses that no provider sends from, none where the system knows 127.0.0.1 only.
func forgerSources() (sources []netip.Addr) {
	if runtime.GOOS != "linux" {
		return nil
	}
	for i := range forgerAddresses {
		sources = append(sources, netip.AddrFrom4([4]byte{127, 0, 2, byte(i + 1)}))
	}
	return sources
}

// flood is one that is under way.
type flood struct {
	run    *run
	share  loadgen.Share
	index  uint8 // of the provider
	rate   int
	secret string // which is not the receiver's
	client *wire.Client

	start time.Time
	sent  atomic.Int64

	mu   sync.Mutex
	next time.Time // when the forgery is due that nobody has taken yet
}

// begin lets the senders loose and returns what stops them.
func (f *flood) begin(ctx context.Context) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.start = time.Now()
	f.next = f.start
	var senders sync.WaitGroup
	for i := range min(max(1, f.rate/forgeriesASender), maxForgers) {
		draw := rand.New(rand.NewPCG(*f.run.plan.Seed, 0xf00d+uint64(i)))
		senders.Go(func() { f.send(ctx, draw) })
	}
	return func(context.Context) error {
		cancel()
		senders.Wait() // each has a request of bounded length under way
		f.client.CloseIdleConnections()
		f.run.note("a flood sent %d forgeries of %s within %.1f s", f.sent.Load(), f.share.Provider.Name, time.Since(f.start).Seconds())
		return nil
	}
}

// send takes one forgery after the other, each at its time, until ctx ends.
func (f *flood) send(ctx context.Context, draw *rand.Rand) {
	req := provider.Request{Header: http.Header{}}
	pause := time.NewTimer(time.Until(f.turn()))
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		f.forge(&req, draw)
		f.attempt(ctx, &req)
		pause.Reset(time.Until(f.turn()))
	}
}

// turn is when the next forgery is to be sent. What the flood is too far behind by is let go.
func (f *flood) turn() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.next) > floodLag {
		f.next = now
	}
	due := f.next
	f.next = due.Add(time.Second / time.Duration(f.rate))
	return due
}

// forge makes a delivery as its provider would, of an event that there never was, and signs it with a secret of its own.
func (f *flood) forge(req *provider.Request, draw *rand.Rand) {
	req.Reset()
	now := time.Now()
	event := provider.Event{
		Number: draw.Uint32(), Key: draw.Uint64(), Draw: draw.Uint64(), Resource: draw.Uint32(), ResourceKey: draw.Uint64(), ResourceDraw: draw.Uint64(),
		Version: 1, At: f.run.plan.Scenario.Load.Day,
	}
	f.share.Provider.Render(req, provider.Delivery{Key: draw.Uint64(), Events: []provider.Event{event}, Attempt: 1})
	f.share.Provider.Sign(req, provider.Signing{Secrets: []string{f.secret}, URL: f.share.URL, Now: now})
}

// attempt sends a forgery and writes it down. Its due time is that of its sending: how late a flood is says nothing about the traffic.
func (f *flood) attempt(ctx context.Context, forged *provider.Request) {
	ctx, cancel := context.WithTimeout(ctx, f.share.Provider.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.share.URL, bytes.NewReader(forged.Body))
	if err != nil {
		f.run.note("a flood could not send: %v", err)
		return
	}
	req.Header = forged.Header
	a := ledger.Attempt{Segment: uint8(f.run.segment.Load()), Due: time.Since(f.run.start)}
	a.Start = a.Due
	var trace wire.Trace
	resp, err := f.client.Do(req, wire.Shape{}, &trace)
	a.Done = time.Since(f.run.start)
	switch {
	case err == nil:
		a.Status, a.Result = uint16(resp.StatusCode), ledger.Refused
		if f.share.Provider.Success(resp.StatusCode) {
			a.Result = ledger.OK
		}
		_ = resp.Body.Close() // what it says is of no interest
	case trace.Written > 0:
		a.Result = ledger.Unanswered
	case errors.Is(context.Cause(ctx), context.Canceled):
		return // the flood was over before it began
	default:
		a.Result = ledger.Unconnected
	}
	f.sent.Add(1)
	f.run.books.Forgery(f.index, a)
}
