package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// hostOf returns what the Host header says: Request.Host, or the URL's.
func hostOf(req *http.Request) (string, error) {
	host := req.Host
	if host == "" {
		host = req.URL.Host
	}
	switch {
	case host == "":
		return "", errors.New("url: no host")
	case !isVisible(host) || !isASCII(host):
		return "", fmt.Errorf("host %q has characters that no host has; write an international name in its xn-- form", shortened(host))
	}
	if zone := strings.IndexByte(host, '%'); zone >= 0 && host[0] == '[' {
		// The zone of an IPv6 address means something on this machine only (RFC 6874).
		if end := strings.IndexByte(host[zone:], ']'); end >= 0 {
			host = host[:zone] + host[zone+end:]
		}
	}
	return host, nil
}

// checkName refuses header names that are none, and those that say how the message is framed: a second one would contradict it.
func checkName(name string) error {
	if !isToken(name) {
		return fmt.Errorf("header %q is not a name", shortened(name))
	}
	switch len(name) {
	case len("Host"), len("Trailer"), len("Content-Length"), len("Transfer-Encoding"):
		for _, own := range []string{"Host", "Trailer", "Content-Length", "Transfer-Encoding"} {
			if strings.EqualFold(name, own) {
				return fmt.Errorf("header %s: the client writes it from the request's fields, so leave it out of the header", name)
			}
		}
	}
	return nil
}

// isConnection reports whether a header is the Connection header, under whatever spelling.
func isConnection(name string) bool {
	return len(name) == len("Connection") && strings.EqualFold(name, "Connection")
}
