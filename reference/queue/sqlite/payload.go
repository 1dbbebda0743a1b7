package sqlite

import (
	"fmt"

	"github.com/klauspost/compress/s2"
)

// How a body is stored, as it stands in the column encoding.
const (
	encodingRaw = 0
	encodingS2  = 1
)

// maxBody bounds Options.MaxPayload: the length of a stored body has four bytes.
const maxBody = 500_000_000

// encode returns the smaller of the payload and its compressed form, on the caller's goroutine. It may return the payload itself. Payloads are compressed one by
// one: there is no shared dictionary, because a payload has to be readable for as long as it is kept, and a dictionary that is lost or
// replaced takes all of them with it.
//
// Note: zstd at its fastest level makes bodies a quarter smaller and takes four times as long in a busy receiver, where its
// tables are never in the processor's cache. There it was a quarter of the receiver's time.
func encode(payload []byte) (encoding int64, body []byte) {
	compressed := s2.Encode(nil, payload)
	if len(compressed) < len(payload) {
		return encodingS2, compressed
	}
	return encodingRaw, payload
}

func decode(encoding int64, body []byte) ([]byte, error) {
	switch encoding {
	case encodingRaw:
		return body, nil
	case encodingS2:
		payload, err := s2.Decode(nil, body)
		if err != nil {
			return nil, fmt.Errorf("%w: decompress: %w", errDamaged, err)
		}
		return payload, nil
	default:
		return nil, fmt.Errorf("payload has the unknown encoding %d: it was stored by a newer version", encoding)
	}
}
