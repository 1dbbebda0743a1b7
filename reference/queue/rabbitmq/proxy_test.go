package rabbitmq_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	neturl "net/url"
	"sync"
	"testing"
	"time"
)

// proxy stands between a queue and the broker, and understands what the broker says: AMQP's frames are a type, a channel of two bytes, a size of four, so many bytes, and 0xCE
// (https://www.rabbitmq.com/resources/specs/amqp0-9-1.pdf, 4.2.3, read November 2026). A method begins with the numbers of its class and its own, two bytes each.
type proxy struct {
	url      string
	listener net.Listener
	to       string
	wg       sync.WaitGroup

	mu    sync.Mutex
	edit  func(f *frame) (drop bool)
	conns map[net.Conn]*sync.Mutex // those to clients, with what a frame is written under
}

type frame struct {
	kind    byte
	channel uint16
	payload []byte
}

// method is the class and the method of a frame, 0 and 0 for others.
func (f *frame) method() (class, method uint16) {
	if f.kind != 1 || len(f.payload) < 4 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(f.payload), binary.BigEndian.Uint16(f.payload[2:])
}

func (f *frame) bytes() []byte {
	b := append([]byte{f.kind}, binary.BigEndian.AppendUint16(nil, f.channel)...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.payload)))
	return append(append(b, f.payload...), 0xCE)
}

func readFrame(r io.Reader) (*frame, error) {
	var head [7]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	f := &frame{kind: head[0], channel: binary.BigEndian.Uint16(head[1:]), payload: make([]byte, binary.BigEndian.Uint32(head[3:])+1)}
	if _, err := io.ReadFull(r, f.payload); err != nil {
		return nil, err
	}
	f.payload = f.payload[:len(f.payload)-1]
	return f, nil
}

// newProxy starts a proxy to a broker.
func newProxy(t testing.TB, broker string) *proxy {
	t.Helper()
	u, err := neturl.Parse(broker)
	if err != nil {
		t.Fatal(err)
	}
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: u.Host, conns: make(map[net.Conn]*sync.Mutex)}
	u.Host = l.Addr().String()
	p.url = u.String()
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	var dialer net.Dialer
	broker, err := dialer.DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		return
	}
	defer func() { _ = broker.Close() }()
	var writing sync.Mutex
	p.mu.Lock()
	p.conns[client] = &writing
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.conns, client)
		p.mu.Unlock()
	}()
	p.wg.Go(func() {
		_, _ = io.Copy(broker, client)
		_ = broker.Close()
	})
	for r := bufio.NewReader(broker); ; {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		p.mu.Lock()
		drop := p.edit != nil && p.edit(f)
		p.mu.Unlock()
		if drop {
			continue
		}
		writing.Lock()
		_, err = client.Write(f.bytes())
		writing.Unlock()
		if err != nil {
			return
		}
	}
}

// setEdit says what becomes of each frame of the broker; nil is nothing.
func (p *proxy) setEdit(edit func(f *frame) (drop bool)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edit = edit
}

// say sends a frame to all clients, as if the broker had.
func (p *proxy) say(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn, writing := range p.conns {
		writing.Lock()
		_, _ = conn.Write(f.bytes())
		writing.Unlock()
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// pass waits until an instant is behind.
func pass(t testing.TB, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
