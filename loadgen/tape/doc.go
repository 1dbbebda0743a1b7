// Package tape records real webhook traffic in front of an endpoint and plays it back.
//
// A [Recorder] is a reverse proxy that leaves requests and answers as they are and writes a recording on the side: one JSON line a request, personal
// data replaced before it touches the disk ([Scrubber]). A [Player] sends a recording again, in its order and with its gaps, signed anew with the provider's own
// rule ([Sender]).
//
// # What the proxy leaves alone
//
// Method, request target, headers and body go on byte for byte, so that a provider's signature holds behind it. Nothing is added: no X-Forwarded-For, no
// Via, no User-Agent, no Accept-Encoding. What net/http forces is this: header names get their canonical spelling (X-GitHub-Event becomes
// X-Github-Event; names are case-insensitive, RFC 9110 section 5.1), headers are sent in the order of their names with the values of one name in theirs, and the
// hop-by-hop headers of RFC 9110 section 7.6.1 end at the proxy. A chunked body stays chunked, in other chunks.
//
// Note: a proxy that copies bytes between two sockets would keep order and spelling too. It would have to understand HTTP's framing by itself in both
// directions to know where a request ends, and a mistake there costs a delivery; the spelling of a header name costs nobody anything.
//
// # What a recording is
//
// The first line is a [Header], every other line a [Request]. Lines stand in the order in which requests were finished; offset_ms orders them by arrival.
// The file is for its owner alone (mode 0600): what is scrubbed is unlinked from people, but it is still real traffic.
package tape
