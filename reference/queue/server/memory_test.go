package server_test

import (
	"errors"
	"slices"
	"testing"

	"floodproof/reference/queue/server"
)

func TestMemoryCommand(t *testing.T) {
	kind := server.Memory("/bin/prog", "node", "memory")
	in := server.Instance{Binary: server.Binary{Path: "/bin/prog"}, Port: 4333}
	cmd, err := kind.Command(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/bin/prog", "node", "memory", "-port=4333", "-with_parent=true"}; !slices.Equal(cmd.Args, want) {
		t.Errorf("command: got %q, want %q", cmd.Args, want)
	}
	if got, want := kind.Address(in), "127.0.0.1:4333"; got != want {
		t.Errorf("address: got %s, want %s", got, want)
	}
	if err := kind.Ready(t.Context(), "127.0.0.1:1"); err == nil {
		t.Errorf("ready where nobody listens: got no error")
	}
	if _, err := server.Start(t.Context(), server.Memory("no-such-program-anywhere"), t.TempDir(), nil); !errors.Is(err, server.ErrMissing) {
		t.Errorf("without its program: got error %v, want %v", err, server.ErrMissing)
	}
}
