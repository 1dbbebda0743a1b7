package bench

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"floodproof/loadgen/provider"
)

// recordCommands are commands of scripts that record: what such a script needs runs beside it.
//
//	webserver VAR SECRET       serve until the script ends, URL in $VAR: 200 for what Stripe signed with SECRET, else 401
//	seen URL N                 the server has seen N different events
//	deliver URL N SECRET       send N events of Stripe, signed with SECRET, that carry a mail address
//	recorder VAR ARGS...       floodproof record in the background, URL in $VAR
//	interrupt STATUS           Ctrl-C for the recorder, which has to exit with STATUS; what it said is in recorder.stderr
func recordCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	r := &recorders{running: map[*testscript.TestScript]*recorder{}}
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"webserver": webserver, "seen": seen, "deliver": deliver, "recorder": r.start, "interrupt": r.interrupt,
	}
}

func webserver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: webserver VAR SECRET")
	}
	stripe, _ := provider.Find("stripe")
	var mu sync.Mutex
	ids := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // cut short, its signature does not hold
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.URL.Path == "/seen":
			_, _ = io.WriteString(w, strconv.Itoa(len(ids)))
		case !signedByStripe(stripe, r.Header.Get("Stripe-Signature"), body, args[1]):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			id, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"id":"`), `"`)
			ids[id] = true
		}
	}))
	ts.Setenv(args[0], server.URL)
	ts.Defer(server.Close)
}

func seen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: seen URL N")
	}
	req, err := http.NewRequest(http.MethodGet, args[0]+"/seen", nil)
	ts.Check(err)
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer func() { _ = resp.Body.Close() }() // it was only read
	got, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if string(got) != args[1] {
		ts.Fatalf("the server has seen %s events, want %s", got, args[1])
	}
}

// signedByStripe signs again with the time of the signature, and compares.
func signedByStripe(stripe *provider.Provider, signature string, body []byte, secret string) bool {
	stamp, _, _ := strings.Cut(strings.TrimPrefix(signature, "t="), ",")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return false
	}
	r := provider.Request{Body: body}
	stripe.Sign(&r, provider.Signing{Secrets: []string{secret}, Now: time.Unix(seconds, 0)})
	return r.Header.Get("Stripe-Signature") == signature
}

func deliver(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: deliver URL N SECRET")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	stripe, _ := provider.Find("stripe")
	for i := range uint64(n) {
		r := provider.Request{Header: http.Header{}}
		e := provider.Event{Key: 1 + i, Draw: 2, ResourceKey: 3, ResourceDraw: 4, Version: 1, At: time.Now()}
		stripe.Render(&r, provider.Delivery{Key: 5, Attempt: 1, Events: []provider.Event{e}})
		r.Body = bytes.Replace(r.Body, []byte(`"object":"event"`), []byte(`"object":"event","email":"anna.lopez@example.org"`), 1)
		stripe.Sign(&r, provider.Signing{Secrets: []string{args[2]}, Now: time.Now()})
		req, err := http.NewRequest(http.MethodPost, args[0], bytes.NewReader(r.Body))
		ts.Check(err)
		req.Header = r.Header
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		ts.Check(err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			ts.Fatalf("delivery %d was answered %s", i, resp.Status)
		}
	}
}

// recorders are the recorders that run, by script.
type recorders struct {
	mu      sync.Mutex
	running map[*testscript.TestScript]*recorder
}

type recorder struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func (r *recorders) start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: recorder VAR ARGS...")
	}
	rec := &recorder{cmd: exec.Command("floodproof", append([]string{"record"}, args[1:]...)...)}
	rec.cmd.Dir, rec.cmd.Stderr = ts.MkAbs("."), &rec.stderr
	out, err := rec.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(rec.cmd.Start())
	ts.Defer(func() {
		_ = rec.cmd.Process.Kill() // ended already, if the script came to its interrupt
		_ = rec.cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = rec.cmd.Wait()
		ts.Fatalf("the recorder did not say where it listens: %v\n%s", err, rec.stderr.String())
	}
	ts.Setenv(args[0], strings.TrimSpace(line))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[ts] = rec
}

func (r *recorders) interrupt(ts *testscript.TestScript, neg bool, args []string) {
	r.mu.Lock()
	rec := r.running[ts]
	r.mu.Unlock()
	if neg || len(args) != 1 || rec == nil || runtime.GOOS == "windows" {
		ts.Fatalf("usage: interrupt STATUS, behind recorder, and not on Windows")
	}
	ts.Check(rec.cmd.Process.Signal(os.Interrupt))
	_ = rec.cmd.Wait() // the status is looked at below
	ts.Check(os.WriteFile(ts.MkAbs("recorder.stderr"), rec.stderr.Bytes(), 0o600))
	if got := strconv.Itoa(rec.cmd.ProcessState.ExitCode()); got != args[0] {
		ts.Fatalf("the recorder exited with %s, want %s; it said\n%s", got, args[0], rec.stderr.String())
	}
}
