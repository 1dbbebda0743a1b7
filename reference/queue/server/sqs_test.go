package server_test

import (
	"errors"
	"slices"
	"testing"

	"floodproof/reference/queue/server"
)

func TestSQSCommand(t *testing.T) {
	kind := server.SQS("/bin/prog", "node", "sqs")
	in := server.Instance{Binary: server.Binary{Path: "/bin/prog"}, Dir: "/data", Port: 4333, Settings: map[string]string{"storage": "nosync"}}
	cmd, err := kind.Command(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/prog", "node", "sqs", "-dir=/data", "-port=4333", "-with_parent=true", "-storage=nosync"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("command: got %q, want %q", cmd.Args, want)
	}
	if got, want := kind.Address(in), "http://127.0.0.1:4333"; got != want {
		t.Errorf("address: got %s, want %s", got, want)
	}
	if err := kind.Ready(t.Context(), "http://127.0.0.1:1"); err == nil {
		t.Errorf("ready where nobody listens: got no error")
	}
	if _, err := server.Start(t.Context(), server.SQS("no-such-program-anywhere"), t.TempDir(), nil); !errors.Is(err, server.ErrMissing) {
		t.Errorf("without its program: got error %v, want %v", err, server.ErrMissing)
	}
}
