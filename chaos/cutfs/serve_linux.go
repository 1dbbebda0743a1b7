package cutfs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"floodproof/chaos/cutfs/disk"
)

func serveStdin(ctx context.Context) error {
	conn, err := net.FileConn(os.Stdin)
	if err != nil {
		return fmt.Errorf("serve: the standard input is no socket: %w", err)
	}
	return Serve(ctx, conn)
}

// Serve serves one mount, as the other end of the connection says, and closes the connection. It returns when it is told to, the connection ends or the
// context is done; the mount is gone then, though processes that use it may keep it going until this process ends, which it should do at once.
func Serve(ctx context.Context, conn net.Conn) error {
	s := &server{gate: newGate()}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	err := s.converse(conn)
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		err = nil // the parent is gone, or we are to go
	}
	return errors.Join(err, s.shutDown(), ignoreClosed(conn.Close()))
}

// server is the child's side.
type server struct {
	gate *gate
	cfg  Config
	// temporary: the backing directory goes when the mount does.
	temporary bool
	disk      *disk.Disk
	fuse      *fuse.Server
	latency   atomic.Int64 // nanoseconds that a sync takes longer
}

// converse answers requests in turn.
func (s *server) converse(conn net.Conn) error {
	decoder, encoder := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var q request
		if err := decoder.Decode(&q); err != nil {
			return err
		}
		if q.Verb == verbClose {
			err := s.shutDown()
			return errors.Join(err, encoder.Encode(replyTo(reply{}, err)))
		}
		r, err := s.handle(q)
		if err := encoder.Encode(replyTo(r, err)); err != nil {
			return err
		}
	}
}

func replyTo(r reply, err error) reply {
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (s *server) handle(q request) (reply, error) {
	if (s.disk == nil) != (q.Verb == verbMount) {
		return reply{}, errors.New("the first request, and no other, is mount")
	}
	switch q.Verb {
	case verbMount:
		s.temporary = q.Temporary
		return reply{}, s.mount(*q.Config)
	case verbArm:
		return reply{}, s.disk.Arm(q.Model)
	case verbCheckpoint:
		return reply{}, s.disk.Checkpoint()
	case verbSlow:
		s.latency.Store(int64(max(q.Latency, 0)))
	case verbFail:
		s.disk.FailSyncs(max(q.Number, 0))
	case verbRoom:
		s.disk.SetRoom(q.Room)
	case verbFreeze:
		s.freeze()
	case verbCut:
		result, err := s.cut(*q.Cut)
		return reply{Result: &result}, err
	case verbStats, verbClose:
	default:
		return reply{}, fmt.Errorf("unknown request %q", q.Verb)
	}
	stats := s.disk.Stats()
	return reply{Stats: &stats}, nil
}

// freeze closes the gate first: what gets through it has its effect on a disk that still has power.
func (s *server) freeze() {
	s.gate.close()
	s.disk.Freeze()
}

func (s *server) cut(c Cut) (Result, error) {
	s.freeze()
	stats := s.disk.Stats()
	if c.Model == "" {
		c.Model = stats.Model
	}
	if c.Dir == "" {
		return Result{}, errors.New("no directory for what is left")
	}
	im, err := s.disk.Crash(c.Model, c.Seed)
	if err != nil {
		return Result{}, err
	}
	written, err := im.WriteTo(c.Dir)
	return Result{Model: c.Model, Seed: c.Seed, Stats: stats, Written: written}, errors.Join(err, im.Close())
}

func (s *server) mount(cfg Config) (err error) {
	var stat syscall.Stat_t
	if err := syscall.Stat(cfg.Mountpoint, &stat); err != nil {
		return fmt.Errorf("look at the mount point: %w", err)
	}
	d, err := disk.New(cfg.Backing, disk.Owner{UID: stat.Uid, GID: stat.Gid})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Close())
			s.disk = nil
		}
	}()
	mode := stat.Mode & 0o7777
	if _, err := d.SetAttr(disk.Root, disk.Set{Mode: &mode}); err != nil {
		return err
	}
	if cfg.Source != "" {
		if err := importTree(d, cfg.Source); err != nil {
			return fmt.Errorf("import %s: %w", cfg.Source, err)
		}
	}
	if cfg.Model, err = disk.ParseModel(string(cfg.Model)); err != nil {
		return err
	}
	if err := d.Arm(cfg.Model); err != nil {
		return err
	}
	s.cfg, s.disk = cfg, d
	s.fuse, err = fuse.NewServer(newFileSystem(s), cfg.Mountpoint, mountOptions())
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	go s.fuse.Serve()
	return nil
}

// mountOptions are for a file system whose only user is the kernel of this machine.
func mountOptions() *fuse.MountOptions {
	return &fuse.MountOptions{
		AllowOther: true, Options: []string{"default_permissions"},
		FsName: "floodproof-cutfs", Name: "floodproof-cutfs",
		MaxWrite: 1 << 20, MaxBackground: 64,
		// Nothing changes behind the kernel's back, so it need not drop its cache when a file's time stamp moves.
		ExplicitDataCacheControl: true,
		DisableXAttrs:            true, DisableReadDirPlus: true,
		DirectMountStrict:    true,
		DisabledCapabilities: fuse.CAP_PASSTHROUGH | fuse.CAP_WRITEBACK_CACHE,
		Logger:               log.New(os.Stderr, "", 0),
	}
}

// shutDown unmounts and closes. The second call does nothing.
func (s *server) shutDown() error {
	if s.disk == nil {
		return nil
	}
	s.freeze()
	s.gate.letGo()
	err := detach(s.cfg.Mountpoint)
	// The server's loops end when the last user is gone. There may be some that never go, and then the end of this process ends them.
	gone := make(chan struct{})
	go func() {
		s.fuse.Wait()
		close(gone)
	}()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-gone:
	case <-timer.C:
	}
	d := s.disk
	s.disk = nil
	err = errors.Join(err, d.Close())
	if s.temporary {
		err = errors.Join(err, os.RemoveAll(s.cfg.Backing))
	}
	return err
}

// importTree copies a directory to an empty disk.
func importTree(d *disk.Disk, source string) error {
	seen := make(map[uint64]disk.ID)
	ids := map[string]disk.ID{".": disk.Root}
	root := os.DirFS(source)
	return fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		id, err := importOne(d, filepath.Join(source, path), disk.Name{Dir: ids[filepath.Dir(path)], Name: filepath.Base(path)}, seen)
		if entry.IsDir() {
			ids[path] = id
		}
		return err
	})
}

// importOne copies one file, directory or link; a file that has several names is copied once.
func importOne(d *disk.Disk, path string, at disk.Name, seen map[uint64]disk.ID) (disk.ID, error) {
	var stat syscall.Stat_t
	if err := syscall.Lstat(path, &stat); err != nil {
		return 0, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	item := disk.Item{Mode: stat.Mode, Owner: disk.Owner{UID: stat.Uid, GID: stat.Gid}}
	if at.Name == "." {
		mode := stat.Mode & 0o7777
		_, err := d.SetAttr(disk.Root, disk.Set{Mode: &mode, UID: &stat.Uid, GID: &stat.Gid})
		return disk.Root, err
	}
	if id, ok := seen[stat.Ino]; ok && stat.Mode&disk.ModeType != disk.ModeDir {
		_, err := d.Link(id, at)
		return id, err
	}
	if stat.Mode&disk.ModeType == disk.ModeLink {
		target, err := os.Readlink(path)
		if err != nil {
			return 0, err
		}
		item.Target = target
	}
	a, err := d.Make(at, item)
	if err != nil {
		return 0, err
	}
	seen[stat.Ino] = a.ID
	if stat.Mode&disk.ModeType != disk.ModeRegular {
		return a.ID, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	return a.ID, errors.Join(d.Import(a.ID, f), f.Close())
}
