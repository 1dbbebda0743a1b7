package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"

	"floodproof/reference/queue/memory/state"
)

// frameVersion begins each record. A reader refuses what it does not know: to skip it would be to disagree with the others about everything after it.
const frameVersion = 1

// frame is the value of one record: commands of one handle, which take effect together or not at all.
type frame struct {
	// writer is the handle, number counts its frames from 1: what comes with a number that is not higher than an earlier one's was sent twice.
	writer uint64
	number int64
	// clock is the writer's, in microseconds since 1970.
	clock    int64
	commands []state.Command
}

// appendHead appends what precedes the commands.
func (f *frame) appendHead(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, frameVersion), f.writer)
	return binary.AppendVarint(binary.AppendVarint(b, f.number), f.clock)
}

func readFrame(b []byte) (frame, error) {
	if len(b) < 9 || b[0] != frameVersion {
		return frame{}, fmt.Errorf("a record of %d bytes is no frame of version %d: something else writes to the topic, or a newer program does", len(b), frameVersion)
	}
	f := frame{writer: binary.BigEndian.Uint64(b[1:])}
	b = b[9:]
	for _, field := range []*int64{&f.number, &f.clock} {
		v, n := binary.Varint(b)
		if n <= 0 {
			return frame{}, errors.New("a record ends within its head")
		}
		*field, b = v, b[n:]
	}
	for len(b) > 0 {
		c, rest, err := state.ReadCommand(b)
		if err != nil {
			return frame{}, err
		}
		f.commands, b = append(f.commands, c), rest
	}
	return f, nil
}
