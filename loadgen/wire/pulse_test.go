package wire

import "runtime"

// canLook: an idle connection can be looked at (see pulse).
const canLook = runtime.GOOS != "windows" && runtime.GOOS != "plan9"
