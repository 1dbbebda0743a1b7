package wire

import (
	"context"
	"net"
	"net/url"
	"time"
)

// hostKey is what connections are pooled by.
type hostKey struct {
	tls  bool
	host string // as the URL has it
}

// host is a server's idle connections, as a list from the newest to the oldest: the newest is the warmest, and the oldest may be given up.
type host struct {
	hostKey
	// address is host:port, name the host alone.
	address, name  string
	newest, oldest *conn
	idle           int
}

func newHost(u *url.URL) *host {
	h := &host{hostKey: hostKey{tls: u.Scheme == "https", host: u.Host}, name: u.Hostname()}
	port := u.Port()
	switch {
	case port != "":
	case h.tls:
		port = "443"
	default:
		port = "80"
	}
	h.address = net.JoinHostPort(h.name, port)
	return h
}

// push adds the newest.
func (h *host) push(c *conn) {
	c.older, c.newer = h.newest, nil
	if h.newest != nil {
		h.newest.newer = c
	} else {
		h.oldest = c
	}
	h.newest = c
	h.idle++
}

// pop takes the newest, nil if there is none.
func (h *host) pop() *conn { return h.remove(h.newest) }

// remove takes a connection out of the list and returns it.
func (h *host) remove(c *conn) *conn {
	if c == nil {
		return nil
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		h.newest = c.older
	}
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		h.oldest = c.newer
	}
	c.older, c.newer = nil, nil
	h.idle--
	return c
}

// host finds or makes the host of a URL.
func (c *Client) host(u *url.URL) *host {
	key := hostKey{tls: u.Scheme == "https", host: u.Host}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[key]
	if h == nil {
		if c.hosts == nil {
			c.hosts = make(map[hostKey]*host)
		}
		h = newHost(u)
		c.hosts[key] = h
	}
	return h
}

// connect returns a connection that serves the attempt from now on: an idle one that is still good, unless fresh, or a new one.
func (c *Client) connect(ctx context.Context, h *host, deadline time.Time, fresh bool) (*conn, error) {
	for !fresh {
		idle := c.takeIdle(h)
		if idle == nil {
			break
		}
		if idle.begin(ctx, deadline); idle.pulse.alive(idle.socket.Conn) {
			return idle, nil
		}
		over := idle.over()
		idle.hangUp(false)
		if over != nil {
			return nil, over // The connection was good, perhaps, but its time is up.
		}
	}
	fresher, err := c.dial(ctx, h, deadline)
	if err != nil {
		return nil, err
	}
	fresher.begin(ctx, deadline)
	return fresher, nil
}

// takeIdle takes the newest idle connection that is not too old, nil if there is none.
func (c *Client) takeIdle(h *host) *conn {
	timeout := setting(c.options.IdleTimeout, defaultIdleTimeout)
	for {
		c.mu.Lock()
		idle := h.pop()
		c.mu.Unlock()
		if idle == nil || timeout == 0 || time.Since(idle.since) < timeout {
			return idle
		}
		idle.close()
	}
}

// keep makes a connection idle, if there is room. The oldest one goes if it is too old.
func (c *Client) keep(idle *conn) bool {
	timeout := setting(c.options.IdleTimeout, defaultIdleTimeout)
	idle.used = true
	if timeout > 0 {
		idle.since = time.Now()
	}
	var tooOld *conn
	c.mu.Lock()
	h := idle.host
	room := h.idle < setting(c.options.MaxIdle, defaultMaxIdle)
	if room {
		h.push(idle)
		if timeout > 0 && idle.since.Sub(h.oldest.since) >= timeout {
			tooOld = h.remove(h.oldest)
		}
	}
	c.mu.Unlock()
	if tooOld != nil {
		tooOld.close()
	}
	return room
}

// reserve counts a connection that is about to be opened.
func (c *Client) reserve() error {
	var victim *conn
	c.mu.Lock()
	if bound := c.options.MaxConns; bound > 0 && c.open >= bound {
		for _, h := range c.hosts {
			if victim = h.remove(h.oldest); victim != nil {
				break
			}
		}
		if victim == nil {
			c.mu.Unlock()
			return ErrMaxConns
		}
	}
	c.open++
	c.mu.Unlock()
	if victim != nil {
		victim.close()
	}
	return nil
}

// closed counts a connection that is closed, or was never opened after all.
func (c *Client) closed() {
	c.mu.Lock()
	c.open--
	c.mu.Unlock()
}
