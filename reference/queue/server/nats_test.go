package server_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"floodproof/reference/queue/server"
)

func TestNATSCommand(t *testing.T) {
	kind := server.NATS("/bin/prog", "node", "nats")
	in := server.Instance{Binary: server.Binary{Path: "/bin/prog"}, Dir: "/data", Port: 4333, Settings: map[string]string{"sync_interval": "2m"}}
	cmd, err := kind.Command(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(cmd.Args)
	slices.Sort(got[3:])
	if want := []string{"/bin/prog", "node", "nats", "-dir=/data", "-port=4333", "-sync_interval=2m", "-with_parent=true"}; !slices.Equal(got, want) {
		t.Errorf("command: got %q, want %q", got, want)
	}
	if got, want := kind.Address(in), "nats://127.0.0.1:4333"; got != want {
		t.Errorf("address: got %s, want %s", got, want)
	}
}

func TestNATSMissing(t *testing.T) {
	if _, err := server.Start(t.Context(), server.NATS("no-such-program-anywhere"), t.TempDir(), nil); !errors.Is(err, server.ErrMissing) {
		t.Errorf("without its program: got error %v, want %v", err, server.ErrMissing)
	}
}

// TestNATSReady: a server that accepts connections is not yet one whose JetStream answers.
func TestNATSReady(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		ready  bool
	}{
		"answers":    {"PING\r\nMSG _INBOX.ready 1 2\r\n{}\r\n", true},
		"nobody":     {"HMSG _INBOX.ready 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", false},
		"error":      {"-ERR 'Authorization Violation'\r\n", false},
		"hangs up":   {"", false},
		"other text": {"+OK\r\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			err := server.NATS("x").Ready(t.Context(), "nats://"+fakeNATS(t, test.answer, asked))
			if (err == nil) != test.ready {
				t.Errorf("ready: got error %v, want ready %v", err, test.ready)
			}
			if question := <-asked; !strings.Contains(question, "$JS.API.INFO") {
				t.Errorf("asked %q, want a question to JetStream", question)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := server.NATS("x").Ready(ctx, "nats://127.0.0.1:1"); err == nil {
		t.Errorf("under a cancelled context: got no error")
	}
}

// fakeNATS answers one connection, and says what it was asked.
func fakeNATS(t *testing.T, answer string, asked chan<- string) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = l.Close(); <-ended })
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = conn.Write([]byte("INFO {}\r\n"))
		var question strings.Builder
		for scanner := bufio.NewScanner(conn); scanner.Scan(); {
			question.WriteString(scanner.Text() + "\n")
			if strings.HasPrefix(scanner.Text(), "PUB ") {
				break
			}
		}
		asked <- question.String()
		_, _ = conn.Write([]byte(answer))
	}()
	return l.Addr().String()
}
