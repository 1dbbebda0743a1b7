package wire

import "syscall"

// addrNotAvailable is what the system says about a local address that is none: WSAEADDRNOTAVAIL.
const addrNotAvailable = syscall.Errno(10049)
