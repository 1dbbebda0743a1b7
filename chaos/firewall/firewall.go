package firewall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"floodproof/chaos/proxy"
)

// ErrUnavailable is wrapped by every error that says that this machine has no such firewall.
var ErrUnavailable = errors.New("the firewall cannot be used here")

// Rule keeps packets of one port of the loopback interface away from their receiver.
type Rule struct {
	// Chain is the name of its chain: letters, digits and hyphens, at most 28, and no other rule's.
	Chain string
	// Port is a TCP port that somebody listens on.
	Port uint16
	// Direction is Up for packets to the port, Down for those from it, Both for all. With one of them a connection is half open: one side is heard, and hears nothing.
	Direction proxy.Direction
	// Reset answers each packet with a reset, which ends its sender's connection. Otherwise it vanishes, and its sender tries again, at growing intervals, until a time-out.
	Reset bool
}

// Available says why rules cannot be put in place on this machine, wrapping [ErrUnavailable]; nil if they can.
func Available(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%w: it needs Linux, and this is %s", ErrUnavailable, runtime.GOOS)
	}
	if _, err := run(ctx, "", "iptables", "-w", lockWithin, "-S", "INPUT"); err != nil {
		return fmt.Errorf("%w: it needs iptables and root: %w", ErrUnavailable, err)
	}
	return nil
}

// lockWithin is how many seconds a command waits for others that use iptables.
const lockWithin = "5"

// Put puts the rule in place. After an error nothing is in place.
func (r Rule) Put(ctx context.Context) error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("put a firewall rule in place: %w", err)
	}
	if r.isThere(ctx) {
		return fmt.Errorf("put a firewall rule in place: there is a chain %s already", r.Chain)
	}
	match, verdict := "-p tcp", "DROP"
	if r.Reset { // whose answers come through the same interface, and must get through
		match, verdict = "-p tcp ! --tcp-flags RST RST", "REJECT --reject-with tcp-reset"
	}
	lines := []string{"*filter", ":" + r.Chain + " - [0:0]"}
	for _, side := range r.sides() {
		lines = append(lines, fmt.Sprintf("-A %s %s --%s %d -j %s", r.Chain, match, side, r.Port, verdict))
	}
	lines = append(lines, "-I INPUT "+r.jump(), "COMMIT", "")
	if err := restore(ctx, lines); err != nil {
		return fmt.Errorf("put a firewall rule in place: %w", err)
	}
	return nil
}

// Remove takes the rule away. One that is not there is no error.
func (r Rule) Remove(ctx context.Context) error {
	if err := r.validate(); err != nil {
		return fmt.Errorf("remove a firewall rule: %w", err)
	}
	if ctx.Err() == nil && !r.isThere(ctx) {
		return nil
	}
	if err := restore(ctx, []string{"*filter", "-D INPUT " + r.jump(), "-F " + r.Chain, "-X " + r.Chain, "COMMIT", ""}); err != nil {
		return fmt.Errorf("remove the firewall rule %s: %w", r.Chain, err)
	}
	return nil
}

// Packets is how many packets the rule has kept away.
func (r Rule) Packets(ctx context.Context) (int64, error) {
	said, err := run(ctx, "", "iptables", "-w", lockWithin, "-n", "-v", "-x", "-L", r.Chain)
	if err != nil {
		return 0, fmt.Errorf("read the firewall rule %s: %w", r.Chain, err)
	}
	return count(said)
}

// count adds up the first column of a listing, below its two lines of headings.
func count(listing string) (sum int64, err error) {
	lines := strings.Split(strings.TrimSpace(listing), "\n")
	for _, line := range lines[min(2, len(lines)):] {
		first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the counters of iptables: %w", err)
		}
		sum += n
	}
	return sum, nil
}

// Undo is a command that does what Remove does, for somebody else to run when this process is gone. Where there is no such rule it does nothing.
func (r Rule) Undo() []string {
	iptables := find("iptables") + " -w " + lockWithin
	script := []string{
		iptables + " -S " + r.Chain + " >/dev/null 2>&1 || exit 0",
		iptables + " -D INPUT " + r.jump(),
		iptables + " -F " + r.Chain,
		iptables + " -X " + r.Chain,
	}
	return []string{"/bin/sh", "-c", strings.Join(script, "\n")}
}

func (r Rule) jump() string { return "-i lo -j " + r.Chain }

// sides are the options of a match by port.
func (r Rule) sides() []string {
	switch r.Direction {
	case proxy.Up:
		return []string{"dport"}
	case proxy.Down:
		return []string{"sport"}
	default:
		return []string{"dport", "sport"}
	}
}

// isThere reports whether the chain exists.
func (r Rule) isThere(ctx context.Context) bool {
	_, err := run(ctx, "", "iptables", "-w", lockWithin, "-S", r.Chain)
	return err == nil
}

func (r Rule) validate() error {
	if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,27}$`).MatchString(r.Chain) {
		return fmt.Errorf("%q is no name for a chain: letters, digits and hyphens, at most 28", r.Chain)
	}
	if r.Port == 0 {
		return errors.New("port 0 is nobody's")
	}
	return nil
}

// restore carries out one transaction.
func restore(ctx context.Context, lines []string) error {
	_, err := run(ctx, strings.Join(lines, "\n"), "iptables-restore", "-w", lockWithin, "--noflush")
	return err
}

// run runs a program of the firewall and returns what it said; its error says what it complained of.
func run(ctx context.Context, in, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, find(program), args...)
	cmd.Stdin = strings.NewReader(in)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	said, err := cmd.Output()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, strings.TrimSpace(complaints.String()))
	}
	return string(said), nil
}

// find looks for a program where the administrator's are, which are not in everybody's path.
func find(program string) string {
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return path
		}
	}
	return program
}
