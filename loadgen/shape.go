package loadgen

import (
	"net/http"
	"time"
)

// Shape is what a sender does to one request besides writing it. The zero value does nothing.
type Shape uint8

const (
	// Whole is a request as it should be.
	Whole Shape = iota
	// CutBody: the connection closes in the middle of the body.
	CutBody
	// SlowBody: of the body, or of its second half, a byte comes every second.
	SlowBody
	// ClientGone: the connection closes when the request is written, and nobody waits for the answer.
	ClientGone
)

// trickle is the time between two bytes of a slow body: any receiver that waits for all of them waits for minutes.
const trickle = time.Second

// Shaper is a transport that has the wire in its hands and gives requests their shape by itself. For others the generator does it: in the connections
// of NewTransport, and through the body that a transport without these reads.
type Shaper interface {
	http.RoundTripper
	// Send makes one attempt in a shape, instead of RoundTrip. connect is how long connecting may take, 0 for no bound but that of the request's context. written
	// is how many bytes of the request left, 0 only if the receiver can have seen none.
	Send(req *http.Request, shape Shape, connect time.Duration) (resp *http.Response, written int64, err error)
}
