package harness

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"floodproof/loadgen"
)

// fewPortsVariable marks the process that has a network of its own.
const fewPortsVariable = "FLOODPROOF_TEST_FEW_PORTS"

// TestFewPorts: in a network of its own, with 50 local ports, a sender without keep-alive is out of ports after 50 requests; with the addresses of transportTo it
// is not after 2,000.
func TestFewPorts(t *testing.T) {
	if os.Getenv(fewPortsVariable) != "" {
		fewPorts(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFewPorts$", "-test.v")
	cmd.Env = append(os.Environ(), fewPortsVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		t.Skipf("no network of its own (%v): allow user namespaces, for example with: sysctl kernel.apparmor_restrict_unprivileged_userns=0", err)
	}
	if err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// fewPorts runs in a network namespace that nobody else uses.
func fewPorts(t *testing.T) {
	loopbackUp(t)
	for path, value := range map[string]string{
		"/proc/sys/net/ipv4/ip_local_port_range": "40000 40049",
		"/proc/sys/net/ipv4/tcp_tw_reuse":        "0",
	} {
		if err := os.WriteFile(path, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go patient(l)
	url := "http://" + l.Addr().String()
	if n, err := connections(t, new(loadgen.WireTransport), url, 2000); !errors.Is(err, syscall.EADDRNOTAVAIL) || n > 50 {
		t.Errorf("after %d connections from one address: %v, want no port after 50", n, err)
	}
	if n, err := connections(t, transportTo(mixOf(url), 16), url, 2000); err != nil {
		t.Errorf("after %d connections from many addresses: %v", n, err)
	}
}

// connections sends so many requests, each with a connection of its own, and returns how many succeeded before the first that did not.
func connections(t *testing.T, with *loadgen.WireTransport, url string, count int) (int, error) {
	t.Helper()
	defer with.CloseIdleConnections()
	for i := range count {
		if err := exchange(t, with, url, 0); err != nil {
			return i, err
		}
	}
	return count, nil
}

// loopbackUp switches the loopback interface on, which a new network has switched off.
func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatalf("switch the loopback on: %v", err)
	}
}
