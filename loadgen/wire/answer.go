package wire

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

const (
	// maxFields is how many header lines an answer may have.
	maxFields = 256
	// maxInterim is how many 1xx answers may come before the final one.
	maxInterim = 5
	// maxLengthDigits keeps a Content-Length within an int64.
	maxLengthDigits = 18
)

// head is an answer's status line and header, understood.
type head struct {
	// minor is the x of HTTP/1.x.
	minor int
	code  int
	// status is the code with its reason.
	status string
	header http.Header
	// length is the Content-Length, -1 without one.
	length int64
	// lengthText is how it was written: a second one must be the same to the letter, as net/http has it.
	lengthText string
	chunked    bool
	close      bool
	keepAlive  bool
}

// parseHead understands a status line and header lines, each with its line end, behind which there is an empty line and nothing more. What it returns points
// into text and values.
//
// Lines may end in LF alone, which RFC 9112 (section 2.2) lets a reader accept and the clients of providers do. Everything by which two readers could come
// to see different messages is an error: a folded line, blanks before a colon, a bare CR, lengths that contradict each other, Content-Length beside
// Transfer-Encoding, a transfer coding that is not "chunked", or any in HTTP/1.0 (RFC 9112, sections 5, 6.1 and 6.3).
func parseHead(text string, values []string) (head, error) {
	line, rest := cutLine(text)
	h, err := parseStatus(line)
	if err != nil {
		return h, err
	}
	fields := strings.Count(rest, "\n") - 1
	if fields > maxFields {
		return h, fmt.Errorf("answer with %d header lines, want at most %d", fields, maxFields)
	}
	h.header = make(http.Header, fields)
	for {
		if line, rest = cutLine(rest); line == "" {
			return h, h.checkFraming()
		}
		name, value, err := parseField(line)
		if err != nil {
			return h, err
		}
		if err := h.note(name, value); err != nil {
			return h, err
		}
		name = http.CanonicalHeaderKey(name)
		if old, again := h.header[name]; again {
			h.header[name] = append(old, value)
			continue
		}
		// The capacity of one value ends where the next begins, so that an append to it moves it away.
		values = append(values, value)
		h.header[name] = values[len(values)-1 : len(values) : len(values)]
	}
}

// cutLine returns the text before the first line end, and that behind it.
func cutLine(s string) (line, rest string) {
	line, rest, _ = strings.Cut(s, "\n")
	return strings.TrimSuffix(line, "\r"), rest
}

// parseStatus understands a status line. Its reason may be missing, and with it the space before it.
func parseStatus(line string) (head, error) {
	h := head{length: -1}
	version, ok := strings.CutPrefix(line, "HTTP/1.")
	if !ok || len(version) < len("1 200") || version[1] != ' ' || version[0] != '0' && version[0] != '1' {
		return h, fmt.Errorf("answer begins with %q, want the status line of HTTP/1.1 or HTTP/1.0", shortened(line))
	}
	h.minor = int(version[0] - '0')
	h.status = version[2:]
	for _, digit := range []byte(h.status[:3]) {
		if digit < '0' || digit > '9' {
			return h, fmt.Errorf("status line %q has no code of three digits", shortened(line))
		}
		h.code = 10*h.code + int(digit-'0')
	}
	if h.code < 100 || len(h.status) > 3 && h.status[3] != ' ' || !isText(h.status) {
		return h, fmt.Errorf("status line %q is not code and reason", shortened(line))
	}
	return h, nil
}

// parseField splits a header line.
func parseField(line string) (name, value string, err error) {
	if line[0] == ' ' || line[0] == '\t' {
		return "", "", fmt.Errorf("header line %q continues another, which nobody may send any more", shortened(line))
	}
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) {
		return "", "", fmt.Errorf("header line %q does not begin with a name and a colon", shortened(line))
	}
	if value = trimBlanks(value); !isText(value) {
		return "", "", fmt.Errorf("header %s has a control character in %q", name, shortened(value))
	}
	return name, value, nil
}

// note takes from a field what it says about the framing.
func (h *head) note(name, value string) error {
	switch {
	case isConnection(name):
		h.close = h.close || hasOption(value, "close")
		h.keepAlive = h.keepAlive || hasOption(value, "keep-alive")
	case len(name) == len("Content-Length") && strings.EqualFold(name, "Content-Length"):
		length, err := parseLength(value)
		if err != nil {
			return err
		}
		if h.length >= 0 && h.lengthText != value {
			return fmt.Errorf("answer with the Content-Lengths %q and %q", shortened(h.lengthText), shortened(value))
		}
		h.length, h.lengthText = length, value
	case len(name) == len("Transfer-Encoding") && strings.EqualFold(name, "Transfer-Encoding"):
		if h.chunked || !strings.EqualFold(value, "chunked") {
			return fmt.Errorf("answer with the Transfer-Encoding %q, want one chunked at most", shortened(value))
		}
		h.chunked = true
	}
	return nil
}

// parseLength understands a Content-Length: digits and nothing else.
func parseLength(value string) (int64, error) {
	length, err := strconv.ParseUint(value, 10, 63)
	if err != nil || value[0] == '+' || len(value) > maxLengthDigits {
		return 0, fmt.Errorf("answer with the Content-Length %q, want one number", shortened(value))
	}
	return int64(length), nil
}

// checkFraming finds fields that contradict each other.
func (h *head) checkFraming() error {
	switch {
	case h.chunked && h.length >= 0:
		return errors.New("answer with both Content-Length and Transfer-Encoding")
	case h.chunked && h.minor == 0:
		return errors.New("answer of HTTP/1.0 with a Transfer-Encoding")
	}
	return nil
}

// interim reports whether another answer follows this one.
func (h *head) interim() bool { return h.code < 200 }

// persistent reports whether the server keeps the connection (RFC 9112, section 9.3).
func (h *head) persistent() bool { return !h.close && (h.minor == 1 || h.keepAlive) }
