package server_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v4/process"

	"floodproof/reference/queue/server"
)

func TestRabbitMQCommand(t *testing.T) {
	t.Setenv("RABBITMQ_NODENAME", "somebody@else")
	t.Setenv("ERL_EPMD_PORT", "4369")
	kind := server.RabbitMQ()
	in := server.Instance{
		Binary: server.Binary{Path: "/bin/rabbit"}, Dir: t.TempDir(), Port: 5671, Settings: map[string]string{"log.console.level": "debug", "disk_free_limit.absolute": "1GB"},
	}
	cmd, err := kind.Command(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := kind.Address(in), "amqp://guest:guest@127.0.0.1:5671/"; got != want {
		t.Errorf("address: got %s, want %s", got, want)
	}
	if cmd.Dir != in.Dir {
		t.Errorf("it works in %q, want %q: by that what a kill leaves behind is found", cmd.Dir, in.Dir)
	}
	for _, name := range []string{"RABBITMQ_NODENAME", "ERL_EPMD_PORT"} {
		values := slices.DeleteFunc(slices.Clone(cmd.Env), func(v string) bool { return !strings.HasPrefix(v, name+"=") })
		if len(values) != 1 || slices.Contains([]string{"RABBITMQ_NODENAME=somebody@else", "ERL_EPMD_PORT=4369"}, values[0]) {
			t.Errorf("%s: got %q, want one value of its own", name, values)
		}
	}
	for _, name := range []string{"HOME", "RABBITMQ_MNESIA_BASE", "RABBITMQ_CONFIG_FILE", "RABBITMQ_ENABLED_PLUGINS_FILE", "RABBITMQ_LOG_BASE"} {
		last := ""
		for _, v := range cmd.Env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				last = value
			}
		}
		if !strings.HasPrefix(last, in.Dir) {
			t.Errorf("%s is %q, want a place in %s", name, last, in.Dir)
		}
	}
	conf, err := os.ReadFile(filepath.Join(in.Dir, "rabbitmq.conf"))
	if err != nil || !strings.Contains(string(conf), "disk_free_limit.absolute = 1GB\n") || !strings.Contains(string(conf), "log.console.level = debug\n") {
		t.Errorf("rabbitmq.conf is %q, error %v; want the settings in it", conf, err)
	}
	if err := kind.Ready(t.Context(), "amqp://guest:guest@127.0.0.1:1/"); err == nil {
		t.Errorf("ready where nobody listens: got no error")
	}
}

// TestRabbitMQLeavesNothing: neither the server nor the port mapper of Erlang, which likes to be a daemon, is there after a kill.
func TestRabbitMQLeavesNothing(t *testing.T) {
	s := start(t, server.RabbitMQ(), nil)
	if got := s.Instance.Binary.Version; !strings.HasPrefix(got, "RabbitMQ ") {
		t.Errorf("version: got %q", got)
	}
	before := processesIn(t, s.Instance.Dir)
	if !slices.ContainsFunc(before, func(name string) bool { return strings.HasPrefix(name, "epmd") }) || len(before) < 2 {
		t.Errorf("running are %q, want the server and its epmd", before)
	}
	if err := s.Kill(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithTimeout(t.Context(), 10*time.Second) // what was just being started, too, is killed when it is found
	defer cancel()
	for after := processesIn(t, s.Instance.Dir); len(after) > 0; after = processesIn(t, s.Instance.Dir) {
		if gone.Err() != nil {
			t.Fatalf("after the kill there are %q", after)
		}
	}
}

// processesIn are the names of those whose home is a directory: a daemon changes its working directory, and keeps its environment.
func processesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := process.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		env, err := p.Environ()
		if err != nil || !slices.Contains(env, "HOME="+dir) {
			continue
		}
		if name, err := p.Name(); err == nil {
			names = append(names, name)
		}
	}
	return names
}
