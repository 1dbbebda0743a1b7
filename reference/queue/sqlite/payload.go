package sqlite

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// How a body is stored, as it stands in the column payloads.encoding.
const (
	encodingRaw  = 0
	encodingZstd = 1
)

// codec compresses payloads one by one, on the caller's goroutine. There is no shared dictionary: a payload has to be readable
// for as long as it is kept, and a dictionary that is lost or replaced takes all of them with it.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// maxBlob is SQLite's own limit of a value; no stored payload is larger.
const maxBlob = 1_000_000_000

// newCodec keeps the memory small: a receiver has some tens of megabytes in all.
func newCodec() (*codec, error) {
	encoder, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(2),
		zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(128<<10))
	if err != nil {
		return nil, fmt.Errorf("make the payload encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxBlob))
	if err != nil {
		return nil, fmt.Errorf("make the payload decoder: %w", err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// encode returns the smaller of the payload and its compressed form. It may return the payload itself.
func (c *codec) encode(payload []byte) (encoding int64, body []byte) {
	compressed := c.encoder.EncodeAll(payload, make([]byte, 0, len(payload)/2+64))
	if len(compressed) < len(payload) {
		return encodingZstd, compressed
	}
	if payload == nil {
		payload = []byte{} // NULL is not a payload
	}
	return encodingRaw, payload
}

func (c *codec) decode(encoding int64, body []byte) ([]byte, error) {
	switch encoding {
	case encodingRaw:
		return body, nil
	case encodingZstd:
		payload, err := c.decoder.DecodeAll(body, nil)
		if err != nil {
			return nil, fmt.Errorf("decompress a stored payload (is the file damaged?): %w", err)
		}
		return payload, nil
	default:
		return nil, fmt.Errorf("payload has the unknown encoding %d: it was stored by a newer version", encoding)
	}
}

func (c *codec) close() {
	c.decoder.Close()
	// EncodeAll leaves nothing open; Close would write the end of a stream that was never begun.
}
