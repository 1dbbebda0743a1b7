//go:build !linux

package server

import "os/exec"

func tie(*exec.Cmd) {}
