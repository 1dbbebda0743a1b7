package server

import "os/exec"

// asServerUser leaves the command to the current user.
func asServerUser(*exec.Cmd, string) error { return nil }

// syncDir does nothing: a directory cannot be synced there.
func syncDir(string) error { return nil }
