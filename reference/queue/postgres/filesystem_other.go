//go:build !linux

package postgres

// memoryFilesystem is not known on this system; a directory is taken for a disk.
func memoryFilesystem(string) (bool, error) { return false, nil }
