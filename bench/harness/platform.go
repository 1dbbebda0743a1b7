package harness

import "errors"

// errWindows: runs need process groups and ports that several processes share.
var errWindows = errors.New("runs need Linux or macOS; on Windows floodproof judges and reports what was run elsewhere")
