// Package proxy is a small TCP proxy that stands between two parts of a pipeline and makes the network between them misbehave: late, slow, silent, torn, gone.
//
//	p, err := proxy.Listen(ctx, proxy.Options{Upstream: "127.0.0.1:6379"})  // clients now connect to p.Addr()
//	lift, err := p.Impose(proxy.Condition{Direction: proxy.Down, Delay: 200 * time.Millisecond})
//	... load ...
//	met, err := lift()  // whom it met; met.Connections is 0 if nobody
//	err = p.Close()
//
// # What is promised
//
// Conditions come and go while connections live. When [Proxy.Impose] returns, each byte that is passed on from then on is subject to the condition, on busy connections
// as on idle ones and on those that are just being accepted; the same holds for the lift. What a condition held back goes on when it is lifted, in its order, nothing
// lost and nothing twice. There are two exceptions, because there loss is the point: what was swallowed by a black hole or sent to
// a vanished side is gone, and the connections that it belonged to are reset at the lift instead of going on with a hole in the stream.
//
// The end of a stream is passed on as what it was: a half-close as a half-close, a reset as a reset, each after the bytes before it and with the same delay.
// A condition's memory is bounded ([Options].Buffer); beyond it the sender feels back-pressure.
//
// # What a proxy cannot do
//
// The kernel accepts a connection before the proxy hears of it, and acknowledges bytes before they are passed on. An upstream that is down shows as a reset
// connection instead of a refused one, and a partition as silence, never as lost packets and their retransmission.
//
// # How it works
//
// Each direction of a connection has one goroutine, a pump. Without conditions it reads and writes in a plain loop. To change what holds, the proxy stores the new
// conditions and sets the pump's deadlines into the past: whatever read or write it is blocked in ends at once, with an exact
// count of what was done, and the rest of the bytes goes to a queue that the new conditions govern.
//
// Note: the loop copies through memory and leaves splice(2) aside. A bare io.Copy through splice carried 2.3 GB/s over loopback and a bare loop of reads and writes 1.8
// (this proxy 1.5, a direct connection 2.8; 2 cores, Linux 6.18, Go 1.26, November 2026), and for payloads of a few KB there is no difference. For that, a splice that is
// interrupted loses what its pipe holds, its bytes can be counted only when it ends, and it cannot see where a reply begins.
package proxy
