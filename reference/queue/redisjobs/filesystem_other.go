//go:build !linux

package redisjobs

// inMemory is not known on this system; a directory is taken for a disk.
func inMemory(string) (bool, error) { return false, nil }
