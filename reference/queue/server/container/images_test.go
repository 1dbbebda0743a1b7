package container

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"floodproof/reference/queue/server/container/wire"
)

// bridged and hosted are the same place on both networks.
func bridged(settings map[string]string) place {
	return place{network: wire.Bridge, port: 7001, more: [2]int{7002, 7003}, password: "secret", settings: settings}
}

func hosted(settings map[string]string) place {
	p := bridged(settings)
	p.network = wire.Host
	return p
}

func TestReference(t *testing.T) {
	redis, ok := Find("redis")
	if !ok {
		t.Fatal("no image of redis")
	}
	t.Setenv("FLOODPROOF_IMAGE_REDIS", "")
	if got, want := redis.Reference(), "redis:7.4.1"; got != want {
		t.Errorf("image %q, want the pinned %q", got, want)
	}
	t.Setenv("FLOODPROOF_IMAGE_REDIS", "mirror.test/valkey:8.0")
	if got, want := redis.Reference(), "mirror.test/valkey:8.0"; got != want {
		t.Errorf("image %q, want the user's %q", got, want)
	}
	if _, ok := Find("memory"); ok {
		t.Error("an image of the built-in memory broker was found")
	}
}

// TestPinned: every image names one release, so that what is measured does not change by itself.
func TestPinned(t *testing.T) {
	for _, i := range Images() {
		_, tag, ok := strings.Cut(i.Pinned, ":")
		if !ok || tag == "latest" || strings.Count(tag, ".") < 1 {
			t.Errorf("%s is pinned to %q, which is not one release", i.Name, i.Pinned)
		}
	}
}

func TestRecipes(t *testing.T) {
	for _, i := range Images() {
		for _, p := range []place{bridged(nil), hosted(nil)} {
			r, err := i.recipe(p)
			if err != nil {
				t.Errorf("%s on %s: %v", i.Name, p.network, err)
				continue
			}
			if !strings.Contains(r.address, "127.0.0.1:7001") {
				t.Errorf("%s on %s: address %q, want the published port of the loopback", i.Name, p.network, r.address)
			}
			if !strings.HasPrefix(r.data, "/") {
				t.Errorf("%s: data in %q, want a directory", i.Name, r.data)
			}
			told := strings.Join(r.command, " ")
			for _, m := range []map[string]string{r.env, r.files} {
				for name, value := range m {
					told += " " + name + "=" + value
				}
			}
			if open := strings.Contains(told, "0.0.0.0"); open != (p.network == wire.Bridge) {
				t.Errorf("%s on %s: listens to everybody: %v; told %s", i.Name, p.network, open, told)
			}
			if !strings.Contains(told, "7001") {
				t.Errorf("%s was not told its port: %s", i.Name, told)
			}
		}
	}
}

func TestSettingsReplaceDefaults(t *testing.T) {
	r, err := redis(hosted(map[string]string{"appendfsync": "everysec"}))
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(r.command, "--appendfsync")
	if at < 0 || r.command[at+1] != "everysec" {
		t.Errorf("command %q, want appendfsync everysec", r.command)
	}
	r, err = postgres(hosted(map[string]string{"synchronous_commit": "off"}))
	if err != nil || !slices.Contains(r.command, "synchronous_commit=off") || slices.Contains(r.command, "synchronous_commit=on") {
		t.Errorf("command %q, error %v, want synchronous_commit=off alone", r.command, err)
	}
	r, err = nats(hosted(map[string]string{"sync_interval": "2m"}))
	if err != nil || !strings.Contains(r.files["/etc/floodproof/nats.conf"], `sync_interval: "2m"`) {
		t.Errorf("files %q, error %v, want sync_interval 2m", r.files, err)
	}
	r, err = rabbitMQ(hosted(map[string]string{"log.console.level": "debug"}))
	want := map[string]string{"/etc/rabbitmq/conf.d/90-floodproof.conf": "log.console.level = debug\nraft.wal_max_size_bytes = 67108864\n"}
	if diff := cmp.Diff(want, r.files); diff != "" || err != nil {
		t.Errorf("files differ (-want +got), error %v:\n%s", err, diff)
	}
	if _, err := kafka(hosted(map[string]string{"storage": "nosync"})); err == nil {
		t.Error("a weaker storage was accepted for a Kafka that would not have it")
	}
}
