package wire

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverVariable) != "" {
		os.Exit(serveBenchmark())
	}
	goleak.VerifyTestMain(m)
}
