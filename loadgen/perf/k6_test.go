package perf

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// k6Script is acme for k6: the same body, with the same signature over it, in the language that k6 speaks.
const k6Script = `
import http from 'k6/http';
import crypto from 'k6/crypto';
import exec from 'k6/execution';

export const options = { discardResponseBodies: true, scenarios: { all: {
  executor: 'shared-iterations', vus: Number(__ENV.SLOTS), iterations: Number(__ENV.COUNT), maxDuration: '5m',
} } };
const filler = '","note":"' + 'x'.repeat(1450) + '"}';

export default function () {
  const body = '{"id":"acme_' + exec.scenario.iterationInTest.toString(36) + filler;
  const stamp = Math.floor(Date.now() / 1000);
  http.post(__ENV.URL, body, { headers: {
    'Content-Type': 'application/json',
    'User-Agent': 'Acme-Webhooks/1.0',
    'Acme-Signature': 't=' + stamp + ',v1=' + crypto.hmac('sha256', __ENV.SECRET, stamp + '.' + body, 'hex'),
  } });
}
`

// k6 runs k6 in a process of its own. The rate is its own, which leaves out how long it takes to start; the processor time is all that it took.
func k6(b *testing.B, program string, l load) figures {
	b.Helper()
	dir := b.TempDir()
	script, summary := filepath.Join(dir, "acme.js"), filepath.Join(dir, "summary.json")
	if err := os.WriteFile(script, []byte(k6Script), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), program, "run", "--quiet", "--no-usage-report", "--summary-export", summary, script)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "URL="+l.to, "SECRET="+secret, "SLOTS="+strconv.Itoa(l.inFlight), "COUNT="+strconv.Itoa(l.count))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("k6: %v\n%s", err, out)
	}
	text, err := os.ReadFile(summary)
	if err != nil {
		b.Fatal(err)
	}
	var said struct {
		Metrics struct {
			Requests struct {
				Count int
				Rate  float64
			} `json:"http_reqs"`
			Failed struct{ Passes int } `json:"http_req_failed"`
		}
	}
	if err := json.Unmarshal(text, &said); err != nil {
		b.Fatal(err)
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	f := figures{requests: said.Metrics.Requests.Count, failed: said.Metrics.Failed.Passes, perSecond: said.Metrics.Requests.Rate}
	if f.requests > 0 {
		f.cpu = used / time.Duration(f.requests)
	}
	return f
}

// BenchmarkK6 lets floodproof and k6 send the same signed requests as fast as 64 in flight allow, in turn and on one processor each. It needs k6 on the path
// (go install go.k6.io/k6@latest).
func BenchmarkK6(b *testing.B) {
	program, err := exec.LookPath("k6")
	if err != nil {
		b.Skip("k6 is not installed, so that nothing can be said about it")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const count = 20_000
	s := startServer(b, atOnce, 1)
	var perSecond, cpu [2][]float64
	for range b.N * rounds {
		l := load{from: acme(), to: s.url, count: count, inFlight: 64}
		f, err := ours(b.Context(), l)
		if err != nil {
			b.Fatal(err)
		}
		for i, f := range []figures{f, k6(b, program, l)} {
			if f.requests != count || f.failed > 0 {
				b.Fatalf("%d requests, %d failed, want %d and none", f.requests, f.failed, count)
			}
			perSecond[i] = append(perSecond[i], f.perSecond)
			cpu[i] = append(cpu[i], float64(f.cpu)/float64(time.Microsecond))
		}
	}
	if saw, want := s.stop(b).Requests, 2*rounds*count*b.N; saw != want {
		b.Fatalf("%d requests arrived, want %d", saw, want)
	}
	for i, name := range []string{"floodproof", "k6"} {
		b.ReportMetric(median(perSecond[i]), name+"-req/s")
		b.ReportMetric(median(cpu[i]), name+"-cpu-µs/req")
	}
	b.ReportMetric(median(perSecond[0])/median(perSecond[1]), "x-k6")
}
