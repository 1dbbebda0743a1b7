//go:build !linux

package redisstreams

// inMemory is not known on this system; a directory is taken for a disk.
func inMemory(string) (bool, error) { return false, nil }
