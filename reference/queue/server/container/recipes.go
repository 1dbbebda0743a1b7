package container

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The recipes promise what the private servers of package server do: what was acknowledged survives a loss of power, unless a setting says otherwise.

// redis sets what server.Redis sets. Its protected mode is off, because with a bridge every client is a stranger; the port is on the loopback alone.
func redis(p place) (recipe, error) {
	settings := p.merged(map[string]string{
		"port": strconv.Itoa(p.port), "bind": p.listen(), "protected-mode": "no", "dir": "/data", "daemonize": "no", "save": "",
		"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no", "aof-load-truncated": "yes", "maxmemory-policy": "noeviction",
	})
	command := []string{"redis-server"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		command = append(command, "--"+name, settings[name])
	}
	return recipe{command: command, data: "/data", address: "redis://" + p.outside()}, nil
}

// postgres sets what server.Postgres sets. The image makes the cluster at its first start, with a server that nobody outside reaches
// (https://github.com/docker-library/docs/tree/master/postgres, read November 2026).
func postgres(p place) (recipe, error) {
	const data = "/var/lib/postgresql/data"
	settings := p.merged(map[string]string{
		"listen_addresses": p.listen(), "port": strconv.Itoa(p.port),
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
		"dynamic_shared_memory_type": "mmap", // a container's /dev/shm has 64 MB
		"logging_collector":          "off",
		"max_connections":            "200", "max_wal_size": "2GB", "autovacuum_naptime": "5s",
	})
	command := []string{"postgres"}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		command = append(command, "-c", name+"="+settings[name])
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword("postgres", p.password), Host: p.outside(), Path: "/postgres", RawQuery: "sslmode=disable"}
	return recipe{
		command: command, data: data, address: u.String(),
		env: map[string]string{
			"POSTGRES_PASSWORD": p.password, "POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C",
			"PGDATA": data + "/cluster", // a directory of another owner must not be the volume itself
		},
	}, nil
}

// rabbitMQ is configured as the server of server.RabbitMQ is. The node's name must not depend on the machine's, since its data lie under it
// (https://www.rabbitmq.com/docs/configure#supported-environment-variables, read November 2026).
func rabbitMQ(p place) (recipe, error) {
	const user = "floodproof"
	settings := p.merged(map[string]string{"log.console.level": "warning", "raft.wal_max_size_bytes": "67108864"})
	var conf strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&conf, "%s = %s\n", name, settings[name])
	}
	u := url.URL{Scheme: "amqp", User: url.UserPassword(user, p.password), Host: p.outside(), Path: "/"}
	return recipe{
		data: "/var/lib/rabbitmq", address: u.String(),
		files: map[string]string{"/etc/rabbitmq/conf.d/90-floodproof.conf": conf.String()},
		env: map[string]string{
			"RABBITMQ_USE_LONGNAME": "true", "RABBITMQ_NODENAME": "floodproof@127.0.0.1",
			"RABBITMQ_NODE_IP_ADDRESS": p.listen(), "RABBITMQ_NODE_PORT": strconv.Itoa(p.port), "RABBITMQ_DIST_PORT": strconv.Itoa(p.more[0]),
			"ERL_EPMD_PORT": strconv.Itoa(p.more[1]), "ERL_EPMD_ADDRESS": "127.0.0.1",
			"RABBITMQ_DEFAULT_USER": user, "RABBITMQ_DEFAULT_PASS": p.password,
		},
	}, nil
}

// nats is configured as the server of server.NATS is, in a file, because sync_interval has no flag; users of the one account may ask for the settings in force
// (https://docs.nats.io/running-a-nats-service/configuration, read November 2026).
func nats(p place) (recipe, error) {
	const path = "/etc/floodproof/nats.conf"
	s := p.merged(map[string]string{"sync_interval": "always", "max_payload": strconv.Itoa(8 << 20), "batch_max_msgs": "8192"})
	return recipe{
		command: []string{"--config", path}, data: "/data", address: "nats://" + p.outside(),
		files: map[string]string{path: fmt.Sprintf(`listen: "%s:%d"
server_name: floodproof
max_payload: %s
max_pending: 256MB
write_deadline: "30s"
jetstream {
  store_dir: "/data"
  sync_interval: %q
  limits { batch { max_msgs: %s } }
}
accounts {
  SYS { exports: [{service: "$SYS.REQ.SERVER.PING.JSZ", accounts: [APP]}] }
  APP {
    jetstream: enabled
    users: [{user: app, password: app}]
    imports: [{service: {account: SYS, subject: "$SYS.REQ.SERVER.PING.JSZ"}}]
  }
}
system_account: SYS
no_auth_user: app
`, p.listen(), p.port, s["max_payload"], s["sync_interval"], s["batch_max_msgs"])},
	}, nil
}

// kafka is one node that is broker and controller (https://kafka.apache.org/documentation/#kraft, read November 2026). Whether a record is synced before it is acknowledged
// is a setting of the topic, so the settings of server.Kafka, whose kfake it replaces, mean nothing here, and a weaker one is refused instead of ignored.
func kafka(p place) (recipe, error) {
	if storage, ok := p.settings["storage"]; ok && storage != "sync" {
		return recipe{}, fmt.Errorf("storage %q is a setting of the kfake that is built in; Kafka in a container has none such", storage)
	}
	const data = "/var/lib/kafka/data"
	controller := "127.0.0.1:" + strconv.Itoa(p.more[0])
	env := map[string]string{
		"KAFKA_NODE_ID": "1", "KAFKA_PROCESS_ROLES": "broker,controller", "KAFKA_LOG_DIRS": data,
		"KAFKA_LISTENERS":                        "PLAINTEXT://" + net.JoinHostPort(p.listen(), strconv.Itoa(p.port)) + ",CONTROLLER://" + controller,
		"KAFKA_ADVERTISED_LISTENERS":             "PLAINTEXT://" + p.outside(),
		"KAFKA_CONTROLLER_LISTENER_NAMES":        "CONTROLLER",
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP":   "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":         "1@" + controller,
		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1", "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1", "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
		"KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
	}
	return recipe{env: env, data: data, address: p.outside()}, nil
}

// outside is where clients find it.
func (p place) outside() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }
