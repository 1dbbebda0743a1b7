package perf

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// rawServer answers every request at once from a single thread: two system calls for each, so that the generator and not the server is the limit. A server
// of goroutines takes about as long for a request as the generator does.
type rawServer struct {
	epoll, listener int
	// pending holds what was read of a request that is not complete yet.
	pending map[int][]byte
	buf     []byte
	answer  []byte
}

// newRawServer listens on a free port and returns the address.
func newRawServer() (*rawServer, string, error) {
	s := &rawServer{pending: map[int][]byte{}, buf: make([]byte, 64<<10), answer: []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")}
	var err error
	if s.listener, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0); err != nil {
		return nil, "", err
	}
	if err := unix.Bind(s.listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, "", err
	}
	if err := unix.Listen(s.listener, 4096); err != nil {
		return nil, "", err
	}
	name, err := unix.Getsockname(s.listener)
	if err != nil {
		return nil, "", err
	}
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, "", err
	}
	return s, fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), s.watch(s.listener)
}

func (s *rawServer) watch(fd int) error {
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
}

// serve runs until the process ends.
func (s *rawServer) serve(count func(requests, connections int)) {
	events := make([]unix.EpollEvent, 512)
	for {
		n, err := unix.EpollWait(s.epoll, events, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		requests, connections := 0, 0
		for _, e := range events[:max(0, n)] {
			if int(e.Fd) == s.listener {
				connections += s.accept()
			} else {
				requests += s.receive(int(e.Fd))
			}
		}
		count(requests, connections)
	}
}

func (s *rawServer) accept() (accepted int) {
	for {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil || s.watch(fd) != nil {
			return accepted
		}
		accepted++
	}
}

// receive reads what there is and answers the requests that are complete.
func (s *rawServer) receive(fd int) (answered int) {
	n, err := unix.Read(fd, s.buf)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0
	}
	if err != nil || n == 0 {
		s.hangUp(fd)
		return 0
	}
	in := s.buf[:n]
	if before := s.pending[fd]; len(before) > 0 {
		in = append(before, in...)
	}
	for {
		size, closing := requestSize(in)
		if size < 0 || size > len(in) {
			break
		}
		in = in[size:]
		answered++
		if _, err := unix.Write(fd, s.answer); err != nil || closing {
			s.hangUp(fd)
			return answered
		}
	}
	if len(in) > 0 {
		s.pending[fd] = bytes.Clone(in)
	} else if len(s.pending[fd]) > 0 {
		delete(s.pending, fd)
	}
	return answered
}

// requestSize is how long the first request is, -1 if that cannot be told yet, and whether its connection ends with it.
func requestSize(in []byte) (size int, closing bool) {
	end := bytes.Index(in, []byte("\r\n\r\n"))
	if end < 0 {
		return -1, false
	}
	head := in[:end+2]
	closing = bytes.Contains(head, []byte("\r\nConnection: close\r\n"))
	_, after, found := bytes.Cut(head, []byte("\r\nContent-Length: "))
	if !found {
		return end + 4, closing
	}
	digits, _, _ := bytes.Cut(after, []byte("\r\n"))
	length, err := strconv.Atoi(string(digits))
	if err != nil {
		return -1, false
	}
	return end + 4 + length, closing
}

func (s *rawServer) hangUp(fd int) {
	delete(s.pending, fd)
	_ = unix.Close(fd)
}

// serveRaw starts a rawServer.
func serveRaw(count func(requests, connections int)) (addr string, err error) {
	s, addr, err := newRawServer()
	if err != nil {
		return "", err
	}
	go s.serve(count)
	return addr, nil
}
