package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// xadd is the peer of BenchmarkPipeline as a command: the few lines that many would write first. Its receiver checks Stripe's signature and answers after one XADD; its worker reads with a
// consumer group, calls the downstream for each entry, and acknowledges. It ends with its standard input.
func xadd() {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	options, err := redis.ParseURL(os.Getenv("XADD_REDIS"))
	switch {
	case err != nil:
	case os.Args[1] == "receiver":
		err = xaddReceiver(ctx, redis.NewClient(options))
	default:
		err = xaddWorker(ctx, redis.NewClient(options))
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func xaddReceiver(ctx context.Context, client *redis.Client) error {
	secret := []byte(os.Getenv("XADD_SECRET"))
	s := &http.Server{Addr: os.Getenv("XADD_LISTEN"), ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || !stripeSigned(r.Header.Get("Stripe-Signature"), body, secret) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if err := client.XAdd(r.Context(), &redis.XAddArgs{Stream: "events", Values: []any{"body", body}}).Err(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	fmt.Println("ready") //nolint:forbidigo // it is a command
	return s.ListenAndServe()
}

// stripeSigned checks as https://docs.stripe.com/webhooks/signature describes.
func stripeSigned(header string, body, secret []byte) bool {
	var stamp, signature string
	for part := range strings.SplitSeq(header, ",") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "t":
			stamp = value
		case "v1":
			signature = value
		}
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(stamp + "."))
	mac.Write(body)
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, mac.Sum(nil))
}

func xaddWorker(ctx context.Context, client *redis.Client) error {
	if err := client.XGroupCreateMkStream(ctx, "events", "workers", "0").Err(); err != nil {
		return err
	}
	fmt.Println("ready") //nolint:forbidigo // it is a command
	work := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for {
		streams, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "workers", Consumer: "one", Streams: []string{"events", ">"}, Count: 64, Block: time.Second}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return err
		}
		var all sync.WaitGroup
		ids := make([]string, 0, len(streams[0].Messages))
		for _, m := range streams[0].Messages {
			ids = append(ids, m.ID)
			all.Go(func() { xaddEffect(ctx, work, m) })
		}
		all.Wait()
		if err := client.XAck(ctx, "events", "workers", ids...).Err(); err != nil {
			return err
		}
	}
}

func xaddEffect(ctx context.Context, client *http.Client, m redis.XMessage) {
	body, _ := m.Values["body"].(string)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("XADD_SINK")+"/effects/"+m.ID, strings.NewReader(body[:min(100, len(body))]))
	if err != nil {
		return
	}
	if res, err := client.Do(r); err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}
