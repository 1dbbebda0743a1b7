//go:build unix

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// asServerUser makes a command run as an ordinary user who owns dir, if we are root, who is refused. Everybody else runs it as himself.
func asServerUser(cmd *exec.Cmd, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		if account, err = user.Lookup("nobody"); err != nil {
			return fmt.Errorf("find a user for the server, which refuses root: %w", err)
		}
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return fmt.Errorf("user %s: %w", account.Username, err)
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return fmt.Errorf("user %s: %w", account.Username, err)
	}
	if err := letThrough(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("let user %s reach %s: %w", account.Username, dir, err)
	}
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(uid), int(gid))
	})
	if err != nil {
		return fmt.Errorf("give %s to user %s: %w", dir, account.Username, err)
	}
	cmd.Dir = dir // the current one may be closed to him
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return nil
}

// letThrough opens the directories from dir upwards for passing through. It changes them only below os.TempDir, where they are somebody's for a while.
func letThrough(dir string) error {
	temp := filepath.Clean(os.TempDir()) + string(filepath.Separator)
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 != 0 {
			continue
		}
		if !strings.HasPrefix(dir, temp) {
			return fmt.Errorf("%s lets nobody through: chmod o+x it, or do not run as root", dir)
		}
		if err := os.Chmod(dir, info.Mode().Perm()|0o011); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes a renaming in dir survive a loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
