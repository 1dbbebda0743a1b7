//go:build !linux

package node

// ForgetStart does nothing here: see the one for Linux.
func ForgetStart() {}
