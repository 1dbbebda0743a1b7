package memlimit

import "errors"

// ErrUnavailable is wrapped by every error that says that this machine has no limit of this kind.
var ErrUnavailable = errors.New("the memory of a process cannot be limited here")

// Means is how a process is limited.
type Means string

// The means, in the order in which they are preferred.
const (
	CgroupV2 Means = "cgroup v2"
	CgroupV1 Means = "cgroup v1"
	RLimit   Means = "rlimit"
)

// Available is the means that Set will use on this machine, for processes of the caller's own user, or an error that wraps [ErrUnavailable]. It makes a group and removes it again.
func Available() (Means, error) { return available() }

// Set lets a process take room bytes more than it has now, at least a page, and returns what takes the limit away. name is that of the cgroup, if one is made; it must not be in use. After an
// error nothing is limited.
func Set(pid int, name string, room int64) (*Limit, error) { return set(pid, name, room) }

// Limit is a limit that is in place. Its methods are not safe for concurrent use.
type Limit struct {
	// Means is how the process is limited.
	Means Means
	// Group is the directory of the cgroup, empty without one. Whoever must clean up after this program removes it, with rmdir(2), when the process is gone.
	Group string

	lift func() error
}

// Kills is how many processes the kernel has killed because of the limit, and whether it says so at all: without a cgroup it does not, since it kills nobody.
func (l *Limit) Kills() (n int, known bool, err error) { return l.kills() }

// Remove takes the limit away: the process may be alive, and has then the limits of where it came from, or gone. The second call does nothing.
func (l *Limit) Remove() error {
	lift := l.lift
	if lift == nil {
		return nil
	}
	if err := lift(); err != nil {
		return err
	}
	l.lift = nil
	return nil
}
