// Package disk is a file system whose power can be cut: it knows at every moment what would be found after a loss of power, and can write that down. It has
// no mount and no kernel in it; package cutfs puts it behind FUSE.
//
// # What is kept
//
// The live file system is what programs see: names and attributes in memory, the bytes of each file in an ordinary file of a private directory. Beside it stands what
// is durable. For names this is a second set of directory entries, brought forward by a journal of the changes that are not durable yet.
// For bytes it is the difference: before a page that is durable is overwritten for the first time, its old content is put aside ([content]); bytes
// that were appended need nothing but the old size. So memory grows with the number of pages that were overwritten since
// their last sync, about 40 bytes for each 4 KiB, and not with the size of a database; the old pages stand in a file of their own, whose
// slots are used again.
//
// A sync takes a snapshot when it begins and makes it durable when it ends ([Disk.BeginSync], [Sync.Done]). In between the power may go, and what is
// written in between is not in it: a program that answers before its sync returned, or that shares a sync which had begun before
// its write, is caught.
//
// # What a crash leaves
//
// [Disk.Freeze] stops the time, [Disk.Crash] derives an [Image] under a [Model], any number of images with different seeds from one instant. Each
// image is one of those that the modelled file system may leave; where it has a choice, the one with least in it unless the model says otherwise.
//
// # Ext4
//
// What ext4 with data=ordered does was taken from its documentation and its source (https://docs.kernel.org/filesystems/ext4/, fs/ext4/fsync.c, namei.c and
// inode.c of Linux 6.12, read November 2026). All changes of names, sizes and attributes go through one journal in their order. A sync of a file commits all of it, unless
// nothing of that file is in it: fdatasync after an overwrite in place commits nothing. A sync of a directory always commits. A file
// renamed over another is written back first (auto_da_alloc), so that after a crash there is the old or the new one, whole. Data that was not
// synced is not in the file, nor is the size that it had; truncate and fallocate are in the journal.
//
// Note: ext4 commits every five seconds by itself, and the kernel writes back dirty pages after thirty. The strict models do neither, because a program must not count
// on it; RandomSubset does both, at random moments. A journal that is full commits, as ext4's does (most of the journal is allowed [journalLimit] changes).
//
// Note: what ext4 does for a file that is truncated to nothing and written anew (write back at close) is left out: it is begun, not waited for, and guards nothing
// against a crash in the same moment. syncfs(2), sync(2) and sync_file_range(2) do not reach a FUSE file system, and count as nothing.
//
// Note: time stamps and extended attributes are not part of the model. After a crash files have the time of the crash.
//
// Note: a copy of every synced range in a second set of files was the alternative to putting old pages aside. It writes everything
// twice, appended logs included, which is most of what brokers do; the old pages of an append-only log cost nothing.
package disk
