package cutfs

import (
	"context"
	"errors"
	"time"

	"floodproof/chaos/cutfs/disk"
)

// ErrUnavailable is wrapped by every error that says that this machine cannot mount the file system.
var ErrUnavailable = errors.New("the power cut cannot be exercised here")

// Config is what is mounted. It goes to the child as JSON.
type Config struct {
	// Mountpoint is an existing directory, best an empty one: what is in it is out of sight while the mount is there.
	Mountpoint string `json:"mountpoint"`
	// Backing is a directory for the bytes, on a disk with room for the data twice; it must be empty. Empty: a temporary one, removed by Close.
	Backing string `json:"backing"`
	// Source is a directory whose content is copied to the mount before anything else, as durable: the result of an earlier cut. Empty: the mount begins empty.
	Source string `json:"source"`
	// Model is how the disk crashes until Arm says otherwise; empty is disk.Ext4Ordered.
	Model disk.Model `json:"model"`
	// RealSync makes each sync that has something to write wait for one of the machine's disk too, so that it takes as long as it would without the mount. It makes nothing more durable.
	RealSync bool `json:"real_sync"`
}

// Cut is one way in which a frozen file system may come back.
type Cut struct {
	// Model is the crash model; empty is the one that was armed. Another one must need the same records: those like ext4 can be exchanged
	// for each other, disk.POSIXStrict and disk.FsyncLies must have been armed.
	Model disk.Model `json:"model"`
	// Seed decides where the model has a choice.
	Seed uint64 `json:"seed"`
	// Dir is where what is left goes. It must be empty or missing.
	Dir string `json:"dir"`
}

// Result is what a cut left.
type Result struct {
	Model   disk.Model   `json:"model"`
	Seed    uint64       `json:"seed"`
	Stats   disk.Stats   `json:"stats"`
	Written disk.Written `json:"written"`
}

// closeWithin is how long Close waits for the child to end by itself.
const closeWithin = 5 * time.Second

// request and reply are what parent and child say to each other, one JSON value after the other, strictly in turn.
type request struct {
	Verb   verb    `json:"verb"`
	Config *Config `json:"config,omitempty"`
	// Temporary says that the child removes the backing directory when it ends: also when the parent cannot any more.
	Temporary bool          `json:"temporary,omitempty"`
	Cut       *Cut          `json:"cut,omitempty"`
	Model     disk.Model    `json:"model,omitempty"`
	Number    int           `json:"number,omitempty"`
	Latency   time.Duration `json:"latency_ns,omitempty"`
	Room      *disk.Room    `json:"room,omitempty"`
}

type reply struct {
	Error  string      `json:"error,omitempty"`
	Stats  *disk.Stats `json:"stats,omitempty"`
	Result *Result     `json:"result,omitempty"`
}

type verb string

const (
	verbMount      verb = "mount"
	verbArm        verb = "arm"
	verbCheckpoint verb = "checkpoint"
	verbSlow       verb = "slow"
	verbFail       verb = "fail"
	verbRoom       verb = "room"
	verbFreeze     verb = "freeze"
	verbCut        verb = "cut"
	verbStats      verb = "stats"
	verbClose      verb = "close"
)

// Available says why the file system cannot be mounted on this machine, wrapping ErrUnavailable; nil if it can.
func Available() error { return available() }

// ServeStdin is what the child process runs: it serves one mount, is told through its standard input which, and returns when it is told to, the parent is gone or the
// context is done. The standard input must be the socket that Mount makes.
func ServeStdin(ctx context.Context) error { return serveStdin(ctx) }
