// Package wire is an HTTP/1.x client for generating load: an http.RoundTripper that does what it is told and nothing else.
//
// It differs from net/http.Transport in what a load generator needs.
//
//   - One call is one request on the wire. net/http resends a request by itself when a kept-alive connection dies and the request may be replayed; here
//     a request of which one byte left is never sent again, and the caller learns how many bytes left (Trace).
//   - Everything happens on the caller's goroutine. net/http has two goroutines for each connection and hands every request and answer over between
//     them, which is most of what a small request costs.
//   - Header names go out as they stand in the map, in the order of their bytes, and nothing is added but Host, the framing of the body, and
//     "Connection: close" when asked. The same request is the same bytes, every time.
//   - A request can misbehave (Shape): HTTP/1.0, a connection cut in the middle of the body, a body that drips, a client that leaves before the answer.
//   - An answer that two readers could understand differently is an error, not a guess.
//
// What it does not do: HTTP/2, proxies, redirects, cookies, compression, Expect/100-continue (an Expect header is sent, nobody waits), upgrades, trailers,
// net/http/httptrace.
//
// The request is written completely before the answer is read, as most senders of webhooks do it. An answer that overtakes a long body is noticed where
// the body pauses, or when the server closes the connection on it; a server that answers, and then neither reads on nor closes, costs the attempt its deadline.
package wire
