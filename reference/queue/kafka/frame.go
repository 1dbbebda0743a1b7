package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"

	"floodproof/reference/queue/memory/state"
)

// The version begins each record. A reader refuses what it does not know: to skip it would be to disagree with the others about everything after it.
const (
	// frameVersion is of frames that hold nothing but the first operations, up to state.Drop.
	frameVersion = 1
	// laterVersion is of frames with others too.
	laterVersion = 2
)

// versionOf is the version of the frames that an operation may be in, at least.
func versionOf(op state.Op) byte {
	if op > state.Drop {
		return laterVersion
	}
	return frameVersion
}

// placeBits are those of a place that say which command of its frame it is: no frame has more.
const placeBits = 16

// placeOf is where a command stands in the log, as a number above 0.
func placeOf(offset int64, command int) int64 { return (offset<<placeBits | int64(command)) + 1 }

// fromPlace is what placeOf has made a number of.
func fromPlace(place int64) (offset int64, command int) {
	place--
	return place >> placeBits, int(place & (1<<placeBits - 1))
}

// frame is the value of one record: commands of one handle, which take effect together or not at all.
type frame struct {
	version byte
	// writer is the handle, number counts its frames from 1: what comes with a number that is not higher than an earlier one's was sent twice.
	writer uint64
	number int64
	// clock is the writer's, in microseconds since 1970.
	clock    int64
	commands []state.Command
	// offset is where it stands in the log, if it was read there.
	offset int64
}

// appendHead appends what precedes the commands.
func (f *frame) appendHead(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(append(b, f.version), f.writer)
	return binary.AppendVarint(binary.AppendVarint(b, f.number), f.clock)
}

func readFrame(b []byte) (frame, error) {
	if len(b) < 9 || b[0] < frameVersion || b[0] > laterVersion {
		return frame{}, fmt.Errorf("a record of %d bytes is no frame of a version up to %d: something else writes to the topic, or a newer program does", len(b), laterVersion)
	}
	f := frame{version: b[0], writer: binary.BigEndian.Uint64(b[1:])}
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
