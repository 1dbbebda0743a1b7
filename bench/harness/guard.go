package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

// The guard is a small process that holds the read end of a pipe. When the pipe ends, the runner is gone, however it went; the guard then kills the process groups and
// removes the directories that it was told of, and exits. Lines of its protocol:
//
//	group PGID BIRTH    a process group, with the birth of its leader in ms since the epoch (a reused pid has another)
//	gone PGID           it ended
//	dir PATH            a directory to remove
//	kept PATH           it is not to be removed any more
//	undo ARGS           a command, as JSON, that removes what is neither a process nor a directory: a container
//	undone ARGS         it is not needed any more

// Guard runs the guard's side until in ends. It never touches a process that it was not told of, nor one that has taken over a pid.
func Guard(in io.Reader) error {
	groups, dirs, undo := map[int]int64{}, map[string]bool{}, map[string]bool{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		switch verb {
		case "group":
			pgid, birth, _ := strings.Cut(rest, " ")
			if n, err := strconv.Atoi(pgid); err == nil {
				groups[n], _ = strconv.ParseInt(birth, 10, 64)
			}
		case "gone":
			if n, err := strconv.Atoi(rest); err == nil {
				delete(groups, n)
			}
		case "dir":
			dirs[rest] = true
		case "kept":
			delete(dirs, rest)
		case "undo":
			undo[rest] = true
		case "undone":
			delete(undo, rest)
		}
	}
	var failed error
	for pgid, birth := range groups {
		if now := birthOf(pgid); now != 0 && birth != 0 && now != birth {
			continue // the pid belongs to a stranger by now
		}
		if err := killGroup(pgid); err != nil {
			failed = fmt.Errorf("kill process group %d: %w", pgid, err)
		}
	}
	for args := range undo {
		if err := runUndo(args); err != nil {
			failed = err
		}
	}
	for dir := range dirs {
		if err := removePatiently(dir); err != nil {
			failed = err
		}
	}
	return failed
}

// undoWithin is how long a command may take that removes something.
const undoWithin = 30 * time.Second

// runUndo runs a command that is given as JSON.
func runUndo(text string) error {
	var args []string
	if err := json.Unmarshal([]byte(text), &args); err != nil || len(args) == 0 {
		return fmt.Errorf("undo %s: not a command", text)
	}
	ctx, cancel := context.WithTimeout(context.Background(), undoWithin)
	defer cancel()
	if said, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("undo %s: %w\n%s", text, err, said)
	}
	return nil
}

// removePatiently removes a directory, in which a process that was told to end may still have a mount.
func removePatiently(dir string) error {
	for try := 0; ; try++ {
		err := os.RemoveAll(dir)
		if err == nil || try == 20 {
			return err
		}
		time.Sleep(100 * time.Millisecond) //nolint:forbidigo // nobody tells when a mount is gone
	}
}

// birthOf is when a process was started, in ms since the epoch, 0 if there is none or the platform does not say.
func birthOf(pid int) int64 {
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return 0
	}
	ms, err := p.CreateTime()
	if err != nil {
		return 0
	}
	return ms
}

// guard is the runner's side. A guard that was killed is replaced and told everything again.
type guard struct {
	command func() *exec.Cmd

	mu     sync.Mutex
	pipe   io.WriteCloser
	groups map[int]int64
	dirs   map[string]bool
	undos  map[string]bool
	closed bool
	ended  chan struct{}
}

// startGuard starts a guard process; command makes it afresh each time.
func startGuard(command func() *exec.Cmd) (*guard, error) {
	g := &guard{command: command, groups: map[int]int64{}, dirs: map[string]bool{}, undos: map[string]bool{}}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g, g.spawn()
}

// spawn starts a guard process and repeats to it what the last one knew. g.mu is held.
func (g *guard) spawn() error {
	cmd := g.command()
	ownGroup(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start guard: %w", err)
	}
	g.pipe, g.ended = pipe, make(chan struct{})
	for pgid, birth := range g.groups {
		g.say("group %d %d", pgid, birth)
	}
	for dir := range g.dirs {
		g.say("dir %s", dir)
	}
	for args := range g.undos {
		g.say("undo %s", args)
	}
	go g.watch(cmd, g.ended)
	return nil
}

// watch replaces a guard that ended before it was closed.
func (g *guard) watch(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait() // how it ended does not matter
	g.mu.Lock()
	defer g.mu.Unlock()
	close(ended)
	if !g.closed {
		_ = g.spawn() // without a guard the children still watch their own pipes
	}
}

// say writes one line; a guard that is just being replaced is told by spawn. g.mu is held.
func (g *guard) say(format string, args ...any) {
	_, _ = fmt.Fprintf(g.pipe, format+"\n", args...)
}

// group tells the guard of a process group, gone that it ended.
func (g *guard) group(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.groups[pgid] = birthOf(pgid)
	g.say("group %d %d", pgid, g.groups[pgid])
}

func (g *guard) gone(pgid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, pgid)
	g.say("gone %d", pgid)
}

// dir tells the guard of a directory to remove if the runner does not.
func (g *guard) dir(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dirs[path] = true
	g.say("dir %s", path)
}

// undo tells the guard of a command to run if the runner does not call done.
func (g *guard) undo(args []string) (done func()) {
	text, _ := json.Marshal(args) // it fails on no string
	g.mu.Lock()
	defer g.mu.Unlock()
	g.undos[string(text)] = true
	g.say("undo %s", text)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.undos, string(text))
		g.say("undone %s", text)
	}
}

// close lets the guard do what is left and waits for its end.
func (g *guard) close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	err, ended := g.pipe.Close(), g.ended
	g.mu.Unlock()
	select {
	case <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("wait for the guard: %w", context.Cause(ctx))
	}
}
