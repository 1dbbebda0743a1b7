package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFileMappings(t *testing.T) {
	const table = `00400000-01dfd000 r-xp 00000000 fe:00 10389889                           /opt/flood proof
01dfd000-0383c000 r--p 019fd000 fe:00 10389889                           /opt/flood proof
0383c000-03e4f000 rw-p 0343c000 fe:00 10389889                           /opt/flood proof
03e4f000-060c7000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r--s 00000000 fe:00 77                         /opt/other
7f0000002000-7f0000002000 r--p 00000000 fe:00 77                         /opt/flood proof
nonsense
7ffd1b1f0000-7ffd1b211000 rw-p 00000000 00:00 0                          [stack]
`
	got := fileMappings(strings.NewReader(table), "/opt/flood proof")
	want := []mapping{{0x400000, 0x1dfd000}, {0x1dfd000, 0x383c000}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("mappings (-want +got):\n%s", diff)
	}
}
