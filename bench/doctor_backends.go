package bench

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"floodproof/bench/backends"
	"floodproof/reference/queue/server/container"
)

// examineServers says how each backend would get its server. A weaker variant, behind an @, has the server of its stronger form, and is named with it. def is what was found of the
// default, which has none.
func examineServers(ctx context.Context, self func(args ...string) *exec.Cmd, def diagnosis) []diagnosis {
	var list []diagnosis
	at := map[string]int{} // where a form stands in the list
	for _, b := range backends.All() {
		form, variant, weaker := strings.Cut(b.Name, "@")
		if i, ok := at[form]; ok && weaker {
			list[i].Variants = append(list[i].Variants, "@"+variant)
			continue
		}
		at[form] = len(list)
		if b.Name == def.Name {
			list = append(list, def)
		} else {
			list = append(list, ofWay(b.Name, b.Find(ctx, self).Way))
		}
	}
	return list
}

func ofWay(name string, w backends.Way) diagnosis {
	d := diagnosis{Area: backendArea, Name: name, State: healthy, Found: w.String(), Fix: w.Fix}
	if w.Kind == "" {
		reason, _, _ := strings.Cut(w.Why.Error(), "\n")
		d.State, d.Found, d.Means = missing, reason, "not here, and no container either"
	}
	return d
}

// examineDocker says whether brokers can be had in containers.
func examineDocker(ctx context.Context, self func(args ...string) *exec.Cmd) diagnosis {
	d := diagnosis{Area: backendArea, Name: "containers", State: healthy}
	version, err := backends.CheckDocker(ctx, self)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		d.State, d.Found, d.Means = missing, reason, "brokers come from their own programs alone"
		_, absent := exec.LookPath("dockerd")
		switch {
		case !errors.Is(err, container.ErrNoDocker):
			d.Fix = "make build"
		case absent != nil:
			d.Fix = "apt-get install docker.io"
		default:
			d.Fix = "systemctl start docker"
		}
		return d
	}
	d.Found = "Docker " + version + "; " + backends.WayVariable + "=container takes it first"
	return d
}
