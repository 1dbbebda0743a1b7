//go:build !unix

package disk

import "os"

func setAttr(path string, a Attr) error { return os.Chmod(path, os.FileMode(a.Mode&0o777)) }

func symlink(path string, n Node) error { return os.Symlink(n.Target, path) }

// makeSpecial leaves out what this platform does not have.
func makeSpecial(string, Attr) (bool, error) { return false, nil }
