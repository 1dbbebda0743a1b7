package harness

import "os/exec"

func ownGroup(*exec.Cmd) {}

func lowerPriority(int, int) error { return errWindows }

func killGroup(int) error { return errWindows }

func stopGroup(int) error { return errWindows }

func pauseGroup(int) error { return errWindows }

func resumeGroup(int) error { return errWindows }
