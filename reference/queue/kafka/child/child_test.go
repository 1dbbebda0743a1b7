package child

import (
	"bytes"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{nil, {"-port=9092"}, {"-dir=x"}, {"-dir=x", "-port=70000"}, {"-dir=x", "-port=1", "-storage=paper"}, {"-unknown"}} {
		var out, complaint bytes.Buffer
		if code := run(args, &out, &complaint); code != 2 || complaint.Len() == 0 {
			t.Errorf("%q: got exit code %d and %q, want 2 and a reason", args, code, complaint.String())
		}
	}
}

func TestVersion(t *testing.T) {
	var out, complaint bytes.Buffer
	if code := run([]string{"-version"}, &out, &complaint); code != 0 || !strings.HasPrefix(out.String(), "kfake ") {
		t.Errorf("-version: got exit code %d, %q, %q", code, out.String(), complaint.String())
	}
}

func TestWithParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var parent atomic.Int64
		parent.Store(7)
		ctx, stop := withParent(t.Context(), func() int { return int(parent.Load()) }, time.Second)
		defer stop()
		<-time.After(10 * time.Second) // of the bubble's clock
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended although its parent is there")
		}
		parent.Store(1)
		<-time.After(2 * time.Second)
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("goes on as an orphan")
		}
	})
}
