package perf

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverVariable); kind != "" {
		os.Exit(serveProcess(kind))
	}
	goleak.VerifyTestMain(m)
}
