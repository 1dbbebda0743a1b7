package container

import "os/exec"

func ownGroup(*exec.Cmd) {}
