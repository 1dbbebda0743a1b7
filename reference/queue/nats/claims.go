package nats

import (
	"context"
	"strconv"
	"time"

	"floodproof/reference/queue"
)

// jsz is the part that matters of the server's answer about its JetStream (https://docs.nats.io/running-a-nats-service/configuration/sys_accounts).
type jsz struct {
	Data *struct {
		Config *struct {
			SyncAlways   bool          `json:"sync_always"`
			SyncInterval time.Duration `json:"sync_interval"`
			StoreDir     string        `json:"store_dir"`
		} `json:"config"`
	} `json:"data"`
}

// makeClaims asks the server instead of repeating what was asked for. sync_interval is the server's and not the stream's, and only the system account may see
// it, unless that exports the question $SYS.REQ.SERVER.PING.JSZ to the queue's account: of a server that does not tell, the end of its processes is all that is claimed.
func (q *Queue) makeClaims(ctx context.Context, config streamConfig) queue.Claims {
	settings := map[string]string{
		"storage": config.Storage, "replicas": strconv.Itoa(config.Replicas), "max_payload": strconv.FormatInt(q.link.conn.MaxPayload(), 10),
		"sync_interval": "unknown: " + jszSubject + " is not exported to this account",
	}
	if config.PersistMode != "" {
		settings["persist_mode"] = config.PersistMode
	}
	durability := queue.DurabilityProcess
	if always, interval, ok := q.askSync(ctx); ok {
		settings["sync_interval"] = interval
		if always {
			durability = queue.DurabilityPower
		}
		if always && config.Replicas > 1 {
			durability = queue.DurabilityFailover
		}
	}
	if config.Storage != "file" || config.PersistMode == "async" {
		durability = queue.DurabilityNone
	}
	return queue.Claims{
		Durability:    durability,
		DedupWindow:   queue.Forever,
		DelayAccuracy: delayAccuracy,
		Debounce:      true,
		SharedLimit:   true,
		MaxPayload:    q.opts.MaxPayload,
		Settings:      settings,
		Version:       "NATS JetStream " + q.link.conn.ConnectedServerVersion(),
	}
}

const jszSubject = "$SYS.REQ.SERVER.PING.JSZ"

// askSync asks when the server syncs its files; ok is that it answered.
func (q *Queue) askSync(ctx context.Context) (always bool, interval string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	var answer jsz
	if err := q.link.ask(ctx, jszSubject, struct{}{}, &answer); err != nil || answer.Data == nil || answer.Data.Config == nil {
		return false, "", false
	}
	if answer.Data.Config.SyncAlways {
		return true, "always", true
	}
	return false, answer.Data.Config.SyncInterval.String(), true
}
