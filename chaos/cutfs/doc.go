// Package cutfs cuts the power of a broker. It mounts a file system through FUSE that remembers what was synced, and shows on demand what a loss of power would have
// left: everything that was made durable, and of the rest what the crash model says (package disk).
//
//	fs, err := cutfs.Mount(ctx, command, cutfs.Config{Mountpoint: dir})  // command runs ServeStdin
//	... start the broker in dir, let it create its queue ...
//	err = fs.Arm(ctx, disk.Ext4Ordered)   // what there is now is durable; the test begins
//	... load ...
//	_, err = fs.Freeze(ctx)               // the power is off: no call returns any more
//	... SIGKILL the broker ...
//	result, err := fs.Cut(ctx, cutfs.Cut{Dir: after})  // what is left, as ordinary files
//	err = fs.Close(ctx)
//	... start the broker on after, or on a new mount with Config.Source ...
//
// # Frozen
//
// From Freeze on no operation of the mount ends: a program that gets an error could still answer somebody, and a machine without power answers nobody. A process that
// was sent SIGKILL is let go, because it can see no result any more. Everything that is durable was so before Freeze returned.
//
// Cut may be called again and again, with other seeds and directories, on the one frozen instant.
//
// # A disk that is full, slow or broken
//
// LimitRoom lets the disk be full, SlowFsync lets syncs take longer and FailFsync lets them fail, each of them until it is ended, and without a cut.
//
// # How it is mounted
//
// The file system runs in a process of its own: a process that serves a mount must never touch it, or both wait for ever (https://github.com/bazil/fuse/issues/264).
// Parent and child talk through a socket, and when it closes, because the parent was killed for example, the child unmounts and ends. [FS.Close] unmounts
// also after the child was killed, lazily, and never waits for it longer than a few seconds.
//
// The kernel caches reads and writes every write through at once; the write-back cache is off, since dirty pages in the kernel would outlive the cut. In this mode the
// kernel sends a sync after each write to a file that was opened with O_SYNC or O_DSYNC, and shared mappings work (https://docs.kernel.org/filesystems/fuse/fuse-io.html, read November 2026).
// Passthrough is refused, because the file system would see no write. Locks, both flock(2) and fcntl(2), are the kernel's own.
//
// # What is not exercised
//
// Where [Available] says why not, there is no power cut, and a report must say so; there is no substitute that could pass.
//
// Note: sync(2) and syncfs(2) are not forwarded to a file system of this kind. They make nothing durable here.
//
// Note: a library that catches the calls of a broker (LD_PRELOAD) was no option: Go programs make their system calls themselves.
package cutfs
