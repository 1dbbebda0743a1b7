//go:build linux

package cutfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"floodproof/chaos/cutfs"
	"floodproof/chaos/cutfs/disk"
)

// stress does the same to two directories, as fsx does to two files, and says where they differ: the mount, and an ordinary one.
type stress struct {
	roots [2]string
	// open are files that stay open, also when their names are gone.
	open   []([2]*os.File)
	random *rand.Rand
}

// path is one of few, so that operations meet.
func (s *stress) path() string {
	names := []string{"a", "b", "c", "d"}
	path := names[s.random.IntN(len(names))]
	for s.random.IntN(3) == 0 {
		path += "/" + names[s.random.IntN(len(names))]
	}
	return path
}

// both does something in both directories and compares the outcome.
func (s *stress) both(what string, do func(root string) (any, error)) error {
	var got [2]any
	var errs [2]error
	for i, root := range s.roots {
		got[i], errs[i] = do(root)
	}
	return differ(what, got, errs)
}

// each is both for an open file.
func (s *stress) each(what string, files [2]*os.File, do func(*os.File) (any, error)) error {
	var got [2]any
	var errs [2]error
	for i, f := range files {
		got[i], errs[i] = do(f)
	}
	return differ(what, got, errs)
}

func differ(what string, got [2]any, errs [2]error) error {
	var codes [2]syscall.Errno
	for i, err := range errs {
		errors.As(err, &codes[i])
	}
	if codes[0] != codes[1] || (errs[0] == nil) != (errs[1] == nil) {
		return fmt.Errorf("%s: the mount says %q, the directory %q", what, fmt.Sprint(errs[0]), fmt.Sprint(errs[1]))
	}
	// cmp is slow with long contents, and asked only what it shall explain.
	if !reflect.DeepEqual(got[1], got[0]) {
		d := cmp.Diff(got[1], got[0])
		return fmt.Errorf("%s: the mount differs (-directory +mount):\n%.2000s", what, d)
	}
	return nil
}

func (s *stress) step() error {
	if len(s.open) > 0 && s.random.IntN(3) > 0 {
		return s.file()
	}
	a, b := s.path(), s.path()
	in := func(root, path string) string { return filepath.Join(root, path) }
	switch s.random.IntN(10) {
	case 0, 1:
		return s.openFile(a, []int{0, os.O_TRUNC, os.O_APPEND, os.O_EXCL}[s.random.IntN(4)])
	case 2:
		return s.both("mkdir "+a, func(r string) (any, error) { return nil, os.Mkdir(in(r, a), 0o750) })
	case 3:
		return s.both("unlink "+a, func(r string) (any, error) { return nil, unix.Unlink(in(r, a)) })
	case 4:
		return s.both("rmdir "+a, func(r string) (any, error) { return nil, unix.Rmdir(in(r, a)) })
	case 5:
		flags := []uint{0, 0, unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE}[s.random.IntN(4)]
		return s.both(fmt.Sprintf("rename %s %s %d", a, b, flags), func(r string) (any, error) {
			return nil, unix.Renameat2(unix.AT_FDCWD, in(r, a), unix.AT_FDCWD, in(r, b), flags)
		})
	case 6:
		return s.both("link "+a+" "+b, func(r string) (any, error) { return nil, os.Link(in(r, a), in(r, b)) })
	case 7:
		return s.both("symlink "+b, func(r string) (any, error) { return nil, os.Symlink(a, in(r, b)) })
	case 8:
		size := s.random.Int64N(20_000)
		return s.both(fmt.Sprintf("truncate %s %d", a, size), func(r string) (any, error) { return nil, os.Truncate(in(r, a), size) })
	default:
		mode := fs.FileMode(0o700 + s.random.IntN(8))
		return s.both("chmod "+a, func(r string) (any, error) { return nil, os.Chmod(in(r, a), mode) })
	}
}

func (s *stress) openFile(path string, flag int) error {
	var files [2]*os.File
	i := 0
	err := s.both(fmt.Sprintf("open %s %o", path, flag), func(root string) (any, error) {
		f, err := os.OpenFile(filepath.Join(root, path), os.O_RDWR|os.O_CREATE|flag, 0o640)
		files[i] = f
		i++
		return nil, err
	})
	if err != nil || files[0] == nil {
		return err
	}
	s.open = append(s.open, files)
	if len(s.open) > 6 {
		old := s.open[0]
		s.open = s.open[1:]
		return s.each("close", old, func(f *os.File) (any, error) { return nil, f.Close() })
	}
	return nil
}

// file does something to a file that is open.
func (s *stress) file() error {
	files := s.open[s.random.IntN(len(s.open))]
	off, n := s.random.Int64N(30_000), 1+s.random.IntN(9000)
	switch s.random.IntN(8) {
	case 0, 1:
		data := bytes.Repeat([]byte{byte(s.random.Uint32())}, n)
		return s.each(fmt.Sprintf("write %d at %d", n, off), files, func(f *os.File) (any, error) {
			if _, err := f.Seek(off, 0); err != nil {
				return nil, err
			}
			return f.Write(data)
		})
	case 2, 3:
		return s.each(fmt.Sprintf("read %d at %d", n, off), files, func(f *os.File) (any, error) {
			p := make([]byte, n)
			got, err := f.ReadAt(p, off)
			return p[:got], err
		})
	case 4:
		return s.each("sync", files, func(f *os.File) (any, error) { return nil, f.Sync() })
	case 5:
		return s.each(fmt.Sprintf("truncate to %d", off), files, func(f *os.File) (any, error) { return nil, f.Truncate(off) })
	case 6:
		modes := []uint32{0, unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE}
		mode := modes[s.random.IntN(len(modes))]
		return s.each(fmt.Sprintf("allocate %d of %d at %d", mode, n, off), files, func(f *os.File) (any, error) {
			return nil, unix.Fallocate(int(f.Fd()), mode, off, int64(n))
		})
	default:
		return s.each("stat", files, func(f *os.File) (any, error) {
			info, err := f.Stat()
			if err != nil {
				return nil, err
			}
			return describe(info), nil
		})
	}
}

// describe is what two files must have in common.
func describe(info fs.FileInfo) string {
	if info.IsDir() {
		return info.Mode().String()
	}
	return fmt.Sprintf("%v %d bytes %d links", info.Mode(), info.Size(), info.Sys().(*syscall.Stat_t).Nlink)
}

// treeOf is a whole directory as text.
func treeOf(t *testing.T, root string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := describe(info)
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", content)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		out[strings.TrimPrefix(path, root)] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStress plays random operations on the mount and on a directory; all that programs see must be the same. At the end everything is durable, and what a cut leaves
// must be the same once more.
func TestStress(t *testing.T) {
	steps := 2500
	if testing.Short() {
		steps = 600
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			f := mount(t, cutfs.Config{})
			s := &stress{roots: [2]string{f.Mountpoint, t.TempDir()}, random: rand.New(rand.NewPCG(seed, 2))}
			t.Cleanup(func() {
				for _, files := range s.open {
					_, _ = files[0].Close(), files[1].Close()
				}
			})
			for i := range steps {
				if err := s.step(); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				if i%500 == 0 {
					compare(t, "on the mount", s.roots[0], s.roots[1])
				}
			}
			if err := f.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			left, _ := cut(t, f, disk.Ext4Ordered, 0)
			compare(t, "after the cut", left, s.roots[1])
		})
	}
}

func compare(t *testing.T, when, got, want string) {
	t.Helper()
	if d := cmp.Diff(treeOf(t, want), treeOf(t, got)); d != "" {
		t.Fatalf("%s (-directory +mount):\n%.3000s", when, d)
	}
}
